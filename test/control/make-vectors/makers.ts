import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { StatementType } from '../../../src/control/intents/statement.js';

/** What python/make.py signs of what cases.json names. */
interface Vectors {
  readonly cases: {
    readonly seed: string;
    readonly statements: readonly {
      readonly name: string;
      readonly kind: StatementType;
      /** Version 1 had none. */
      readonly audience?: string;
      readonly platformId: number;
      readonly fields: Readonly<Record<string, string | number>>;
    }[];
  };
  readonly python: {
    /** Hexadecimal. */
    readonly publicKey: string;
    readonly sshPublic: string;
    readonly skPublic: string;
    /** A signature over the first statement that a hardware key made without being touched. */
    readonly skUntouched: string;
    readonly statements: readonly (Readonly<Record<'name' | 'text' | 'hash' | 'signature' | 'sk', string>> & {
      readonly ssh?: string;
    })[];
  };
}

const succeeds = (program: string, args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;

export const HAS_PHP = succeeds('php', ['-r', 'exit(function_exists("sodium_crypto_sign_detached") ? 0 : 1);']);
export const HAS_PYTHON = succeeds('python3', ['-c', 'import cryptography.hazmat.primitives.asymmetric.ed25519']);

const readJson = (file: string): unknown => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
export const readVectors = () => readJson('../vectors.json') as Vectors;

/** @param args - `--ssh-keygen` for its signatures, too */
export function makeVectors(...args: readonly string[]): object {
  const cases = readJson('cases.json');
  const path = fileURLToPath(new URL('python/make.py', import.meta.url));
  const options = { input: JSON.stringify(cases), encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync('python3', [path, ...args], options);
  if (status !== 0) throw new Error(`make.py ended with ${String(status)}: ${stderr}`);
  return { cases, python: JSON.parse(stdout) as unknown };
}
