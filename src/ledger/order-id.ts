import { createHash } from 'node:crypto';
import { ask, type LedgerConnection } from './ledger-connection.js';
import type { SendAttempt } from './sender-ledger.js';

/**
 * The name by which the payment of an attempt may be found at the gateway. It is made from the token, so it is new for
 * each attempt and tells nothing of the payout. Token and attempt are in the ledger and in the journal before the first
 * byte leaves, so it can be made again after a crash.
 * @returns 32 hexadecimal digits
 */
export function orderIdOf({ payoutId, attempt, token }: SendAttempt): string {
  return createHash('sha256')
    .update(JSON.stringify([payoutId, attempt, token]))
    .digest('hex')
    .slice(0, 32);
}

/**
 * The attempts that the ledger has recorded of a payout, newest first. One number has several tokens if the ledger came
 * back older between two of them; an attempt that the ledger has forgotten has none.
 * @throws RedisUnavailableError
 */
export async function readAttempts({ redis, keys }: LedgerConnection, payoutId: string): Promise<SendAttempt[]> {
  const tokens = (await ask(redis.hget(keys.payout(payoutId), 'tokens'))) ?? '';
  return tokens
    .split(' ')
    .flatMap((word, index) =>
      word
        .split('/')
        .filter((token) => token !== '' && token !== FORGOTTEN)
        .map((token) => ({ payoutId, attempt: index + 1, token })),
    )
    .reverse();
}

/** As in prelude/attempts.lua. */
const FORGOTTEN = '?';
