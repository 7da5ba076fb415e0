import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';

export default async function globalTeardown(): Promise<void> {
  await globalThis.testRedis?.stop();
  printWarnings();
}

function printWarnings(): void {
  const { warningsFile } = globalThis;
  if (warningsFile === undefined) return;
  const warnings = readIfThere(warningsFile);
  rmSync(dirname(warningsFile), { recursive: true, force: true });
  if (warnings === '') return;
  process.stderr.write(`Node printed warnings:\n${warnings}`);
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
