import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from '@jest/globals';
import { InvalidConfigError } from '../../../src/base/errors.js';

interface TestFolder {
  /** The path of something in it, or of the folder itself. */
  at(...names: readonly string[]): string;
  make(name: string): string;
  write(name: string, content: string | Buffer, mode?: number): void;
}

export function useFolder(): TestFolder {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'control-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });
  const at = (...names: readonly string[]) => join(folder, ...names);
  return {
    at,
    make(name) {
      mkdirSync(at(name), { recursive: true });
      return at(name);
    },
    write(name, content, mode = 0o644) {
      writeFileSync(at(name), content, { mode });
    },
  };
}

/** The problems that it finds in what was configured, or none. */
export function problemsOf(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    return error.problems.map(({ field, message }) => `${field} ${message}`);
  }
  return [];
}

/** The message of what a function throws, or nothing. */
export function messageOf(work: () => unknown) {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return '';
}
