import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { StatementType } from '../../../src/control/intents/statement.js';

/**
 * What Python's cryptography signed, ssh-keygen, and a hardware key that was played by software. The formats never
 * change; `git log -- test/control/make-vectors` has the program.
 */
interface Vectors {
  readonly cases: {
    readonly seed: string;
    readonly statements: readonly {
      readonly name: string;
      readonly kind: StatementType;
      readonly audience: string;
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
    readonly statements: readonly Readonly<Record<'name' | 'text' | 'hash' | 'signature' | 'sk' | 'ssh', string>>[];
  };
}

export const readVectors = () =>
  JSON.parse(readFileSync(new URL('../vectors.json', import.meta.url), 'utf8')) as Vectors;

const succeeds = (program: string, args: readonly string[]) =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;

export const HAS_PHP = succeeds('php', ['-r', 'exit(function_exists("sodium_crypto_sign_detached") ? 0 : 1);']);
export const HAS_PYTHON = succeeds('python3', ['-c', 'import cryptography.hazmat.primitives.asymmetric.ed25519']);
