import type { Clock } from '../../base/clock.js';
import { InvalidConfigError, SignerError } from '../../base/errors.js';
import type { Logger } from '../../base/logger.js';
import { requireKeyName } from './find-signing-key.js';
import type { Keyring, KeyRole } from './keyring.js';
import { OtherKeyError, type Signer, trySigner } from './signer.js';

/**
 * Checks who signs final states, at the start. Payments matter more than their receipts: an expired key, or a signer
 * that does not answer now, is only logged.
 * @param keyring - undefined if the worker has none; the key is then not compared
 * @throws InvalidConfigError if holders of the keyring could not verify what it signs
 */
export async function checkReceiptSigner(
  signer: Signer,
  keyring: Pick<Keyring, 'find'> | undefined,
  clock: Pick<Clock, 'wallNow'>,
  logger: Logger,
): Promise<void> {
  requireKeyName(signer, 'receiptSigner');
  const { name: key } = signer;
  const problem = keyring && findKeyProblem(key, 'worker', keyring);
  if (problem !== undefined) throw wrongKey(problem);
  const { notBefore = -Infinity, notAfter = Infinity } = keyring?.find(key) ?? {};
  const now = clock.wallNow();
  if (now < notBefore || now > notAfter) {
    logger.warn({ key }, 'final states are signed with a key outside its time: nobody will believe them');
  }
  try {
    await trySigner(signer, keyring?.find(key));
    logger.info({ key }, 'final states are signed');
  } catch (error) {
    if (!(error instanceof SignerError)) throw error;
    if (error instanceof OtherKeyError) throw wrongKey(otherKey('PAYOUT_WORKER_SIGNER'));
    logger.error({ key, error: error.message }, 'final states cannot be signed now: they get no receipt meanwhile');
  }
}

function wrongKey(message: string): InvalidConfigError {
  return new InvalidConfigError([{ field: 'PAYOUT_WORKER_SIGNER_NAME', message }]);
}

export function otherKey(variable: string): string {
  return `must be the name of the key of ${variable}: the keyring has another public key under it`;
}

/** Why holders of the keyring could not verify a key of this name. Does not check its time. */
export function findKeyProblem(name: string, role: KeyRole, keyring: Pick<Keyring, 'find'>): string | undefined {
  const entry = keyring.find(name);
  if (entry === undefined)
    return `must be a key of the keyring (PAYOUT_KEYS_FILE), which has none of that name (got "${name}")`;
  if (entry.role !== role) return `must be a key with the role ${role}, not ${entry.role} (got "${name}")`;
  if (!entry.revoked) return undefined;
  return `must not be revoked in the keyring: make a new key with \`payouts keys generate\` (got "${name}")`;
}
