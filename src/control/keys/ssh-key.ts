import type { KeyObject } from 'node:crypto';
import { bytesOf, publicKeyOf } from './ed25519.js';
import { SshReader } from './ssh-reader.js';

/** An OpenSSH public key. A hardware key (`sk-`) is bound to an application, such as `ssh:`. */
export interface SshKey {
  readonly type: 'ssh-ed25519' | 'sk-ssh-ed25519@openssh.com';
  readonly key: KeyObject;
  readonly application?: string | undefined;
}

export const SSH_KEY_TYPES = ['ssh-ed25519', 'sk-ssh-ed25519@openssh.com'] as const;

/** @throws RangeError if the bytes are no Ed25519 key */
export function parseSshKey(bytes: Buffer): SshKey {
  const reader = new SshReader(bytes);
  const type = reader.text();
  if (type === 'ssh-ed25519') {
    const key = publicKeyOf(reader.bytes());
    reader.end();
    return { type, key };
  }
  if (type !== 'sk-ssh-ed25519@openssh.com') throw new RangeError('is no Ed25519 key of OpenSSH');
  const key = publicKeyOf(reader.bytes());
  const application = reader.text();
  reader.end();
  return { type, key, application };
}

export function isSameKey(one: SshKey, other: SshKey): boolean {
  return (
    one.type === other.type && one.application === other.application && bytesOf(one.key).equals(bytesOf(other.key))
  );
}
