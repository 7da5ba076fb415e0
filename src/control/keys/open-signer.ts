import { createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Clock, systemClock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import { keyNameField } from '../../base/fields.js';
import { checkTrustedProgram } from '../../base/trusted-file.js';
import { findSigningKey } from './find-signing-key.js';
import { isSignedBy, type Keyring, type KeyringKey, type KeyRole, parsePublicKey } from './keyring.js';
import { keySigner, readSigningKey } from './signing-key.js';
import { OtherKeyError, SIGN_WITHIN_MS, type Signer, type SignerKind, splitSigner } from './signer.js';
import { fingerprintOf, type SshKey } from './ssh.js';

/** The key that a signer signs with, and what it needs. */
export interface SignerOptions {
  /** The key's name in the keyring. @defaultValue its name in `keyring`, if `role` is given */
  readonly name?: string | undefined;
  /** The public keys that count. `exec:` needs it. */
  readonly keyring?: Keyring | undefined;
  /**
   * What the key must be allowed to sign, now, by the keyring.
   * @defaultValue not checked here: who verifies the signature does
   */
  readonly role?: KeyRole | undefined;
  /** Accepts a file that every user of the machine can read or write. @defaultValue false */
  readonly allowReadableSecrets?: boolean | undefined;
  /**
   * Called with OpenSSH's messages, such as that a hardware key waits for a touch. @defaultValue messages are dropped
   */
  readonly onMessage?: ((text: string) => void) | undefined;
  /** Of `ssh-keygen`, the agent and the program, such as SSH_AUTH_SOCK and PATH. @defaultValue that of this process */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** How long an agent or a program may take for a signature, in ms. @defaultValue 5000 */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Pick<Clock, 'wallNow'> | undefined;
}

/** What `openSigner` opened. */
export interface OpenedSigner extends Signer {
  /** Whose key it is; undefined if the keyring was not asked. */
  readonly person?: string | undefined;
  /** Each signature may need a person, so signatures are stored one by one. */
  readonly isInteractive: boolean;
}

/**
 * Opens a signer. Nothing is signed yet, and no agent or program is asked: `payouts doctor` does that.
 * @param from - where the private key is:
 * - `file:PATH`, or a path alone: PKCS#8 PEM from `payouts keys generate`
 * - `agent:SHA256:…`: the ssh-agent of SSH_AUTH_SOCK; the Ed25519 key with this fingerprint (`ssh-add -l`)
 * - `exec:PROGRAM`: a program that reads the text from stdin, and prints its signature as base64url
 * - `ssh:FILE.pub`: `ssh-keygen -Y sign`, which may ask for a touch. For operators and approvers only
 * @throws InvalidInputError if the text, the file or the options cannot be used
 * @throws NotVerifiedError if the keyring lacks the key, or its signature would not count
 */
export function openSigner(from: string, options: SignerOptions = {}): OpenedSigner {
  const [kind, rest] = splitSigner(from);
  const opened = OPENERS[kind](rest, options);
  const { keyring, role, name, clock = systemClock } = options;
  const key =
    role === undefined || keyring === undefined
      ? opened.key
      : findSigningKey(keyring, opened.publicKey, { role, name, now: clock.wallNow() });
  const { isInteractive = false, sign } = opened;
  const [signedBy, person] = [key?.name ?? parseName(name), key?.person];
  // What this process signed itself needs no look.
  const wanted = kind === 'file' ? undefined : (key ?? (opened.publicKey && { public: opened.publicKey }));
  return {
    name: signedBy,
    ...(person !== undefined && { person }),
    isInteractive,
    sign: async (text) => {
      const signature = await sign(text);
      if (wanted === undefined || isSignedBy(wanted, text, signature)) return signature;
      throw new OtherKeyError(signedBy);
    },
  };
}

interface OpenedKey {
  /** Undefined if only the agent knows it. */
  readonly publicKey: SshKey | undefined;
  /** Its entry in the keyring, if that says which key it is. */
  readonly key?: KeyringKey | undefined;
  readonly isInteractive?: boolean;
  readonly sign: Signer['sign'];
}

const OPENERS: Readonly<Record<SignerKind, (rest: string, options: SignerOptions) => OpenedKey>> = {
  file(path, { allowReadableSecrets = false }) {
    if (path === '') throw invalid('signer', `must be a path, or begin with agent:, exec: or ssh: (got "${path}")`);
    try {
      const privateKey = readSigningKey(path, allowReadableSecrets);
      const publicKey: SshKey = { type: 'ssh-ed25519', key: createPublicKey(privateKey) };
      return { publicKey, sign: keySigner('', privateKey).sign };
    } catch (error) {
      throw invalid('signer', `${path} ${(error as Error).message}`);
    }
  },
  agent(fingerprint, { keyring, environment, timeoutMs = SIGN_WITHIN_MS }) {
    if (!/^SHA256:[A-Za-z0-9+/]{43}$/.test(fingerprint)) {
      const rule = 'must be agent: and a fingerprint as `ssh-add -l` prints it, SHA256: and 43 characters';
      throw invalid('signer', `${rule} (got "agent:${fingerprint}")`);
    }
    const key = keyring?.keys.find((each) => fingerprintOf(each.public) === fingerprint);
    const sign = lazily(async () => {
      const { agentSigner } = await import('./agent-signer.js');
      return agentSigner(fingerprint, environment, timeoutMs);
    });
    return { publicKey: key?.public, sign };
  },
  exec(program, { keyring, name, allowReadableSecrets = false, environment, timeoutMs = SIGN_WITHIN_MS }) {
    const path = resolve(program);
    if (keyring === undefined || name === undefined) {
      throw invalid(
        'signer',
        "is exec:, which needs the key's name and the keyring (PAYOUT_KEYS_FILE): only these say whose signature it is",
      );
    }
    const key = keyring.find(name);
    if (key === undefined)
      throw invalid('name', `must be a key of the keyring, which has none of that name (got "${name}")`);
    try {
      if (!allowReadableSecrets) checkTrustedProgram(path);
    } catch (error) {
      throw invalid('signer', `${path} ${(error as Error).message}`);
    }
    const sign = lazily(async () => {
      const { execSigner } = await import('./exec-signer.js');
      return execSigner(path, environment, timeoutMs);
    });
    return { publicKey: key.public, key, sign };
  },
  ssh(path, { role, environment, onMessage = () => undefined }) {
    if (role !== 'operator' && role !== 'approver') {
      throw invalid(
        'signer',
        'is ssh:, which signs in a form that counts for operators and approvers only: use agent:',
      );
    }
    const sign = lazily(async () => {
      const { signWithSsh } = await import('./ssh-signer.js');
      return async (text) => signWithSsh(path, text, { environment, onMessage });
    });
    return { publicKey: readPublicKey(path), isInteractive: true, sign };
  },
};

/** Most processes sign with a file, or not at all. */
function lazily(open: () => Promise<Signer['sign']>): Signer['sign'] {
  let opened: ReturnType<typeof open> | undefined;
  return async (text) => (await (opened ??= open()))(text);
}

function readPublicKey(path: string): SshKey {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw invalid('signer', `${path} cannot be read: ${(error as Error).message}`);
  }
  try {
    return parsePublicKey(text.trim());
  } catch {
    const rule = 'ssh-ed25519 or sk-ssh-ed25519@openssh.com, as `ssh-keygen -t ed25519` or `-t ed25519-sk` makes it';
    throw invalid('signer', `${path} holds no public key of OpenSSH that can be used: ${rule} (FILE.pub)`);
  }
}

function parseName(name: string | undefined): string {
  if (name === undefined) {
    throw invalid('name', 'is missing: there is no keyring to find the name of the key in');
  }
  const parsed = keyNameField.safeParse(name);
  if (parsed.success) return parsed.data;
  throw invalid('name', `${parsed.error.issues[0]?.message ?? 'is not valid'} (got "${name}")`);
}

function invalid(field: string, message: string): InvalidInputError {
  return new InvalidInputError([{ field, message }]);
}
