import { readSource } from './source-path.cjs';

interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
}

const readManifest = (): Manifest => JSON.parse(readSource('../package.json')) as Manifest;

export function readVersion(): string {
  return readManifest().version;
}

/** @returns what is wrong with the version of Node that runs this; undefined if the package promises it */
export function findOldNode(version = process.versions.node): string | undefined {
  const oldest = Number(/\d+/.exec(readManifest().engines.node)?.[0]);
  if (Number.parseInt(version) >= oldest) return undefined;
  return `Node.js ${version} is older than ${oldest}, the oldest that payout-queue is tested with`;
}
