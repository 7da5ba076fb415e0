import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface SourceChange {
  readonly file: string;
  readonly edits: readonly (readonly [find: string, replace: string])[];
}

export const program = (...args: string[]): string[] => ['--import', 'tsx', ...args];

export const jest = (file: string): string[] => ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', file];

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Plants a change in a copy of the project and runs one of its proofs or tests there.
 * @param args - of node: see {@link program} and {@link jest}
 * @returns what it printed
 * @throws Error when a text to replace is not there exactly once
 */
export async function runPlanted({ file, edits }: SourceChange, args: readonly string[]): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'payout-queue-planted-'));
  try {
    for (const name of ['src', 'test', 'package.json', 'tsconfig.json', 'jest.config.js']) {
      await cp(join(ROOT, name), join(dir, name), { recursive: true });
    }
    await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
    await plant(join(dir, 'src', file), edits);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: dir }).catch(
      (error: unknown) => error as { stdout: string; stderr: string },
    );
    return stdout + stderr;
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function plant(path: string, edits: SourceChange['edits']): Promise<void> {
  let text = await readFile(path, 'utf8');
  for (const [find, replace] of edits) {
    if (text.split(find).length !== 2) throw new Error(`${path} does not have this text exactly once: ${find}`);
    text = text.replace(find, () => replace);
  }
  await writeFile(path, text);
}
