import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { StatementType } from '../../../src/control/intents/statement.js';

/** The programs in other languages that sign what cases.json names. */

interface MadeStatement {
  readonly name: string;
  readonly text: string;
  readonly hash: string;
  readonly signature: string;
}

/** A signed text of cases.json. */
interface StatementCase {
  readonly name: string;
  readonly kind: StatementType;
  /** Version 1 had none. */
  readonly audience?: string;
  readonly platformId: number;
  readonly fields: Readonly<Record<string, string | number>>;
}

interface MadeByPhp {
  /** Hexadecimal. */
  readonly publicKey: string;
  readonly statements: readonly MadeStatement[];
}

interface MadeByPython {
  readonly publicKey: string;
  readonly sshPublic: string;
  readonly skPublic: string;
  /** A signature over the first statement that a hardware key made without being touched. */
  readonly skUntouched: string;
  readonly statements: readonly (MadeStatement & { readonly sk: string; readonly ssh?: string })[];
}

const succeeds = (program: string, args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;

export const HAS_PHP = succeeds('php', ['-r', 'exit(function_exists("sodium_crypto_sign_detached") ? 0 : 1);']);
export const HAS_PYTHON = succeeds('python3', ['-c', 'import cryptography.hazmat.primitives.asymmetric.ed25519']);

/** Runs one of the programs of this folder. @returns what it printed, as JSON */
export function runMaker(file: string, input: unknown, args: readonly string[] = []): unknown {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const program = file.endsWith('.php') ? 'php' : 'python3';
  const options = { input: JSON.stringify(input), encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(program, [path, ...args], options);
  if (status !== 0) throw new Error(`${file} ended with ${String(status)}: ${stderr}`);
  return JSON.parse(stdout);
}

const readJson = (file: string): unknown => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
export const readCases = (): unknown => readJson('cases.json');

export function readVectors() {
  return readJson('../vectors.json') as {
    readonly cases: { readonly seed: string; readonly statements: readonly StatementCase[] };
    readonly php: MadeByPhp;
    readonly python: MadeByPython;
  };
}
