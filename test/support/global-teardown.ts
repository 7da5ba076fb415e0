import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';

/** @throws Error if Node or Jest printed a warning: among those that nobody reads would be one that matters */
export default async function globalTeardown() {
  await globalThis.testRedis?.stop();
  const warnings = takeWarnings(globalThis.warningsFile) + (globalThis.jestWarning ?? '');
  if (warnings !== '') throw new Error(`Warnings were printed:\n${warnings}`);
}

function takeWarnings(file: string | undefined) {
  if (file === undefined) return '';
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Node makes it with the first warning.
    return '';
  } finally {
    rmSync(dirname(file), { recursive: true, force: true });
  }
}
