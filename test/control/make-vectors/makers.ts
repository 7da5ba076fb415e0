import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The programs in other languages that sign what cases.json names, or verify what was signed elsewhere. */

export interface MadeStatement {
  readonly name: string;
  readonly text: string;
  readonly hash: string;
  readonly signature: string;
}

export interface MadeByPhp {
  /** Hexadecimal. */
  readonly publicKey: string;
  readonly statements: readonly MadeStatement[];
}

export interface MadeByPython {
  readonly publicKey: string;
  readonly sshPublic: string;
  readonly skPublic: string;
  /** A signature over the first statement that a hardware key made without being touched. */
  readonly skUntouched: string;
  readonly statements: readonly (MadeStatement & { readonly sk: string; readonly ssh?: string })[];
}

export const HAS_PHP = succeeds('php', ['-r', 'exit(function_exists("sodium_crypto_sign_detached") ? 0 : 1);']);
export const HAS_PYTHON = succeeds('python3', ['-c', 'import cryptography.hazmat.primitives.asymmetric.ed25519']);
/** Without a key to sign with it ends with 255, but it is there. */
export const HAS_SSH_KEYGEN = spawnSync('ssh-keygen', ['-Y', 'sign'], { stdio: 'ignore' }).error === undefined;

function succeeds(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: 'ignore' }).status === 0;
}

/**
 * Runs one of the programs.
 * @param file - relative to this folder
 * @returns what it printed, as JSON
 */
export function runMaker(file: string, input: unknown, args: readonly string[] = []): unknown {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const program = file.endsWith('.php') ? 'php' : 'python3';
  const { status, stdout, stderr } = spawnSync(program, [path, ...args], {
    input: JSON.stringify(input),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${file} ended with ${String(status)}: ${stderr}`);
  return JSON.parse(stdout);
}

export function readCases(): unknown {
  return JSON.parse(readFileSync(new URL('cases.json', import.meta.url), 'utf8'));
}
