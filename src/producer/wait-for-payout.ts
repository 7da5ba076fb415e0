import type { Clock } from '../clock.js';
import { ClosedError, NotFoundError, RedisUnavailableError, WaitTimeoutError } from '../errors.js';
import type { Payout } from '../ledger/payout.js';
import { SETTLED_STATES } from '../ledger/states.js';

const POLL_MIN_MS = 50;
const POLL_MAX_MS = 1_000;

export interface WaitOptions {
  readonly payoutId: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly closed: AbortSignal;
}

/**
 * Polls a payout at growing intervals until it is settled. Waits for an unavailable Redis too.
 * @throws NotFoundError, WaitTimeoutError, ClosedError
 */
export async function waitForPayout(
  read: (payoutId: string) => Promise<Payout | undefined>,
  { payoutId, timeoutMs, clock, closed }: WaitOptions,
): Promise<Payout> {
  const giveUpAt = clock.now() + timeoutMs;
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(pauseMs * 1.5, POLL_MAX_MS)) {
    const seen = await look(read, payoutId);
    if (typeof seen !== 'string' && isSettled(seen)) return seen;
    const leftMs = giveUpAt - clock.now();
    if (leftMs <= 0) {
      const found = typeof seen === 'string' ? seen : `it is ${seen.state}`;
      throw new WaitTimeoutError(`Payout ${payoutId} is not settled after ${timeoutMs} ms: ${found}`);
    }
    await clock.sleep(Math.min(pauseMs, leftMs), closed);
    if (closed.aborted) throw new ClosedError(`Producer was closed while waiting for payout ${payoutId}`);
  }
}

/** A payout that is only held until a time is sent without a person. */
function isSettled({ state, held }: Payout): boolean {
  return SETTLED_STATES.includes(state) && (held?.until === undefined || held.needs !== undefined);
}

async function look(
  read: (payoutId: string) => Promise<Payout | undefined>,
  payoutId: string,
): Promise<Payout | string> {
  try {
    const payout = await read(payoutId);
    if (payout !== undefined) return payout;
  } catch (error) {
    if (error instanceof RedisUnavailableError) return error.message;
    throw error;
  }
  throw new NotFoundError(`Payout ${payoutId} not found`);
}
