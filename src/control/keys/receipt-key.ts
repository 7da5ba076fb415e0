import { createPublicKey } from 'node:crypto';
import type { Clock } from '../../base/clock.js';
import { InvalidConfigError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { bytesOf } from './ed25519.js';
import type { Keyring } from './keyring.js';
import { parseSigningKey, type SigningKey, type SigningKeyOption } from './signing-key.js';

/**
 * The key for final states; undefined if they are not signed. An expired one is only a warning: payments matter more
 * than their receipts.
 * @param keyring - undefined if the worker has none; the key is then not compared
 * @throws InvalidConfigError if the key cannot be used, or holders of the keyring could not verify it
 */
export function openReceiptKey(
  option: SigningKeyOption | undefined,
  keyring: Pick<Keyring, 'find'> | undefined,
  clock: Pick<Clock, 'wallNow'>,
  logger: Logger,
): SigningKey | undefined {
  if (option === undefined) return undefined;
  const key = parseSigningKey(option, 'receiptKey');
  const problem = keyring && findReceiptKeyProblem(key, keyring);
  if (problem !== undefined) throw new InvalidConfigError([{ field: 'PAYOUT_WORKER_KEY_NAME', message: problem }]);
  const { notBefore = -Infinity, notAfter = Infinity } = keyring?.find(key.name) ?? {};
  const now = clock.wallNow();
  if (now < notBefore || now > notAfter) {
    logger.warn({ key: key.name }, 'final states are signed with a key outside its time: nobody will believe them');
  }
  logger.info({ key: key.name }, 'final states are signed');
  return key;
}

/** Why holders of the keyring could not verify this key. Does not check its time. */
export function findReceiptKeyProblem(
  { name, privateKey }: SigningKey,
  keyring: Pick<Keyring, 'find'>,
): string | undefined {
  const entry = keyring.find(name);
  if (entry === undefined)
    return `must be a key of the keyring (PAYOUT_KEYS_FILE), which has none of that name (got "${name}")`;
  if (entry.role !== 'worker') return `must be a key with the role worker, not ${entry.role} (got "${name}")`;
  if (entry.revoked)
    return `must not be revoked in the keyring: make a new key with \`payouts keys generate\` (got "${name}")`;
  if (bytesOf(createPublicKey(privateKey)).equals(bytesOf(entry.public.key))) return undefined;
  return `must be the name of the key in PAYOUT_WORKER_KEY_FILE: the keyring has another public key under it (got "${name}")`;
}
