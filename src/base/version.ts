import { readSource } from './source-path.cjs';

export function readVersion(): string {
  return (JSON.parse(readSource('../package.json')) as { version: string }).version;
}
