import { followSignals } from '../base/clock.js';
import { ClosedError, NotFoundError, RedisUnavailableError, StoppedError, WaitTimeoutError } from '../base/errors.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Payout } from '../ledger/payout.js';
import { SETTLED_STATES } from '../ledger/states.js';

const POLL_MIN_MS = 50;
const POLL_MAX_MS = 1_000;

/**
 * Polls a payout at growing intervals until it is settled. Waits for an unavailable Redis too.
 * @throws NotFoundError, WaitTimeoutError, ClosedError, StoppedError
 */
export async function waitForPayout(
  ledger: { readonly get: PayoutLedger['get']; readonly connection: Pick<LedgerConnection, 'clock'> },
  payoutId: string,
  timeoutMs: number,
  closed: AbortSignal,
  signal?: AbortSignal,
): Promise<Payout> {
  const { clock } = ledger.connection;
  const ended = followSignals(closed, ...(signal === undefined ? [] : [signal]));
  const giveUpAt = clock.now() + timeoutMs;
  try {
    for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 1.5, POLL_MAX_MS)) {
      const seen = await look(ledger, payoutId);
      if (typeof seen !== 'string' && isSettled(seen)) return seen;
      const leftMs = giveUpAt - clock.now();
      if (leftMs <= 0) {
        const found = typeof seen === 'string' ? seen : `it is ${seen.state}`;
        throw new WaitTimeoutError(`Payout ${payoutId} is not settled after ${timeoutMs} ms: ${found}`);
      }
      await clock.sleep(Math.min(pauseMs, leftMs), ended.signal);
      if (closed.aborted) throw new ClosedError(`Producer was closed while waiting for payout ${payoutId}`);
      if (signal?.aborted === true)
        throw new StoppedError(`Waiting for payout ${payoutId} was aborted; the payout goes on`);
    }
  } finally {
    ended.end();
  }
}

/** A payout that is only held until a time is sent without a person. */
function isSettled({ state, held }: Payout): boolean {
  return SETTLED_STATES.includes(state) && (held?.until === undefined || held.needs !== undefined);
}

async function look(ledger: Pick<PayoutLedger, 'get'>, payoutId: string): Promise<Payout | string> {
  try {
    const payout = await ledger.get(payoutId);
    if (payout !== undefined) return payout;
  } catch (error) {
    if (error instanceof RedisUnavailableError) return error.message;
    throw error;
  }
  throw new NotFoundError(`Payout ${payoutId} not found`);
}
