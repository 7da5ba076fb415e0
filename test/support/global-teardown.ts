import { readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';

/** @throws Error if the run printed a warning of Node: among those that nobody reads would be one that matters */
export default async function globalTeardown() {
  await globalThis.testRedis?.stop();
  const warnings = takeWarnings(globalThis.warningsFile);
  if (warnings !== '') throw new Error(`Node printed warnings:\n${warnings}`);
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
