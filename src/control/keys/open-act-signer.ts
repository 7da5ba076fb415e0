import { spawn } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type Clock, systemClock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import { audienceField, keyNameField, parseInput } from '../../base/fields.js';
import { type ActSigner, type DecidingRole, findSigningKey } from '../approvals/act-signer.js';
import { signText } from './ed25519.js';
import { isSignedBy, type Keyring, parsePublicKey } from './keyring.js';
import { readSigningKey } from './signing-key.js';
import { SSH_NAMESPACE, type SshKey } from './ssh.js';

/** The key of an operator or an approver. Give either `keyFile` or `sshKeyFile`. */
export interface ActSignerOptions {
  /** An Ed25519 private key (PKCS#8, PEM) from `payouts keys generate`. */
  readonly keyFile?: string | undefined;
  /**
   * An OpenSSH public key (`FILE.pub`, Ed25519). Its private key is in ssh-agent, on a hardware key or beside it. Signs
   * with `ssh-keygen`, which may ask the operator.
   */
  readonly sshKeyFile?: string | undefined;
  /** The public keys that count. A key that would not count is then refused before any change. */
  readonly keyring?: Keyring | undefined;
  /**
   * The environment whose workers must accept the act, as their `PAYOUT_AUDIENCE` names it. Never read it from Redis.
   */
  readonly audience: string;
  /** The key's name in the workers' keyring. @defaultValue its name in `keyring` */
  readonly keyName?: string | undefined;
  /** Accepts a `keyFile` that every user of the machine can read or write. @defaultValue false */
  readonly allowReadableSecrets?: boolean | undefined;
  /**
   * Called with OpenSSH's messages, such as that a hardware key waits for a touch. @defaultValue messages are dropped
   */
  readonly onMessage?: ((text: string) => void) | undefined;
  /** The environment of `ssh-keygen`, such as SSH_AUTH_SOCK and PATH. @defaultValue that of this process */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  readonly clock?: Pick<Clock, 'wallNow'> | undefined;
}

interface OpenedKey {
  readonly publicKey: SshKey;
  readonly isInteractive: boolean;
  readonly sign: ActSigner['sign'];
}

/**
 * Opens an operator's key to sign acts: see `signer` of `PayoutOperator`.
 * @throws InvalidInputError if the key cannot be used, or has neither a keyring nor a name
 * @throws NotVerifiedError if the keyring lacks the key, or its signature over an act would not count
 */
export function openActSigner(options: ActSignerOptions): ActSigner {
  return openSigner(options, 'operator');
}

/**
 * Opens an approver's key to sign approvals.
 * @throws InvalidInputError if the key cannot be used
 * @throws NotVerifiedError if the keyring lacks the key, or it is not an approver's
 */
export function openApprovalSigner(options: ActSignerOptions & { readonly keyring: Keyring }): ActSigner {
  return openSigner(options, 'approver');
}

function openSigner(options: ActSignerOptions, role: DecidingRole): ActSigner {
  const { keyring, keyName, clock = systemClock } = options;
  const { audience } = parseInput(z.object({ audience: audienceField }), { audience: options.audience });
  const { publicKey, isInteractive, sign } = openKey(options);
  if (keyring === undefined) return { name: parseName(keyName), audience, isInteractive, sign };
  const key = findSigningKey(keyring, publicKey, { role, name: keyName, now: clock.wallNow() });
  return {
    name: key.name,
    audience,
    person: key.person,
    isInteractive,
    sign: async (text) => {
      const signature = await sign(text);
      if (isSignedBy(key, text, signature)) return signature;
      throw invalid(
        'sshKeyFile',
        `gave a signature that does not count for the key "${key.name}": was the key touched?`,
      );
    },
  };
}

function openKey(options: ActSignerOptions): OpenedKey {
  const { keyFile, sshKeyFile, allowReadableSecrets = false, environment, onMessage = () => undefined } = options;
  if (keyFile !== undefined && sshKeyFile !== undefined) {
    throw invalid('sshKeyFile', 'is given, and keyFile too: one key signs');
  }
  if (sshKeyFile !== undefined) {
    const sign = async (text: string): Promise<string> => signWithSsh(sshKeyFile, text, { environment, onMessage });
    return { publicKey: readPublicKey(sshKeyFile), isInteractive: true, sign };
  }
  if (keyFile === undefined) throw invalid('keyFile', 'is missing (or give sshKeyFile)');
  try {
    const key = readSigningKey(keyFile, allowReadableSecrets);
    const publicKey: SshKey = { type: 'ssh-ed25519', key: createPublicKey(key) };
    return { publicKey, isInteractive: false, sign: async (text) => Promise.resolve(signText(text, key)) };
  } catch (error) {
    throw invalid('keyFile', `${keyFile} ${(error as Error).message}`);
  }
}

function readPublicKey(path: string): SshKey {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw invalid('sshKeyFile', `${path} cannot be read: ${(error as Error).message}`);
  }
  try {
    return parsePublicKey(text.trim());
  } catch {
    const rule = 'ssh-ed25519 or sk-ssh-ed25519@openssh.com, as `ssh-keygen -t ed25519` or `-t ed25519-sk` makes it';
    throw invalid('sshKeyFile', `${path} holds no public key of OpenSSH that can be used: ${rule} (FILE.pub)`);
  }
}

function parseName(name: string | undefined): string {
  if (name === undefined) {
    throw invalid('keyName', 'is missing: there is no keyring to find the name of the key in');
  }
  const parsed = keyNameField.safeParse(name);
  if (parsed.success) return parsed.data;
  throw invalid('keyName', `${parsed.error.issues[0]?.message ?? 'is not valid'} (got "${name}")`);
}

function invalid(field: string, message: string): InvalidInputError {
  return new InvalidInputError([{ field, message }]);
}

const PROGRAM = 'ssh-keygen';

interface SshSurroundings {
  readonly environment: Readonly<Record<string, string | undefined>> | undefined;
  readonly onMessage: (text: string) => void;
}

/**
 * Signs with OpenSSH. The private key may be in an agent, on a hardware key, or in the file beside the public one.
 * OpenSSH itself asks for a passphrase or a touch, so this has no time limit.
 * @param publicKeyFile - `FILE.pub`
 * @param environment - of OpenSSH, which finds the agent by SSH_AUTH_SOCK; by default that of this process
 * @param onMessage - called with OpenSSH's messages, such as that the key waits for a touch
 * @returns the armoured signature
 * @throws InvalidInputError if OpenSSH is missing, lacks the key, or does not sign
 */
async function signWithSsh(
  publicKeyFile: string,
  text: string,
  { environment, onMessage }: SshSurroundings,
): Promise<string> {
  // -q: it does not say that it reads from stdin.
  const child = spawn(PROGRAM, ['-q', '-Y', 'sign', '-f', publicKeyFile, '-n', SSH_NAMESPACE], {
    env: environment as NodeJS.ProcessEnv | undefined,
  });
  let [signature, messages] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => (signature += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    messages += part;
    onMessage(part);
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  // A program that ends before reading everything gives its reason on stderr.
  child.stdin.on('error', () => undefined).end(text);
  let code: number | null;
  try {
    code = await ended;
  } catch (error) {
    throw refused(
      (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? `needs ${PROGRAM} of OpenSSH 8.2 or newer, which is not in PATH: install it, or sign with keyFile`
        : `needs ${PROGRAM}, which could not be started: ${(error as Error).message}`,
    );
  }
  if (code === 0) return signature;
  const why =
    messages.trim().replace(/\s*\n\s*/g, '; ') || `it ended with ${code === null ? 'a signal' : `code ${code}`}`;
  throw refused(
    `was not used by ${PROGRAM}: ${why}. Is the key in ssh-agent (\`ssh-add -l\`), or its private key beside it?`,
  );
}

function refused(message: string): InvalidInputError {
  return new InvalidInputError([{ field: 'sshKeyFile', message }]);
}
