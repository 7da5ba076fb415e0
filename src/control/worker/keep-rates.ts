import { every } from '../../base/clock.js';
import { parseCurrencies } from '../../worker/keep-gateway-facts.js';
import type { PolicedRuntime } from '../control-runtime.js';
import { DEFAULT_USD, type Policy } from '../policy/policy.js';
import { isInDollars } from '../policy/rule.js';
import type { UsdRates } from '../policy/usd-rates.js';

type RatesRuntime = Pick<PolicedRuntime, 'current' | 'journal' | 'gateway' | 'clock' | 'logger'>;

/** The longest interval. A short `maxAge` shortens it, or payouts would wait between two queries. */
const FETCH_EVERY_MS = 5 * 60_000;
/** After a failed query: payouts wait for it. */
const RETRY_MS = 10_000;
/** A reloaded policy may need dollars. */
const CHECK_EVERY_MS = 1_000;

/**
 * Fetches dollar rates from the gateway while the policy needs them, until the signal is aborted. Rates in Redis are
 * for display only: anyone with write access could set them.
 */
export async function keepRates(runtime: RatesRuntime, rates: UsdRates, signal: AbortSignal): Promise<void> {
  const { current, clock, logger } = runtime;
  let fetchAt = -Infinity;
  let reported: string | undefined;
  const fetch = async (): Promise<void> => {
    await fetchRates(runtime, rates);
    // A rate seen once needs a second sight to count.
    fetchAt = clock.now() + (rates.isUnconfirmed ? RETRY_MS : fetchEveryMs(current.policy));
    reported = undefined;
  };
  const fetchWhenDue = (): Promise<void> | undefined =>
    current.policy.rules.some(isInDollars) && clock.now() >= fetchAt ? fetch() : undefined;
  const onError = ({ message }: Error): void => {
    if (message !== reported) logger.warn({ error: message }, 'rates in dollars could not be fetched; payouts wait');
    reported = message;
    fetchAt = clock.now() + RETRY_MS;
  };
  await every(CHECK_EVERY_MS, fetchWhenDue, { clock, signal, onError });
}

async function fetchRates({ gateway, journal, clock }: RatesRuntime, rates: UsdRates): Promise<void> {
  const currencies = parseCurrencies(await gateway.currencies());
  const known = currencies.flatMap(({ paymentId, usdRate }) =>
    usdRate === undefined ? [] : [[paymentId, usdRate] as const],
  );
  if (known.length === 0) throw new Error('/currencies: no item has a rate that is understood');
  const wallNow = clock.wallNow();
  const moved = rates.update(known, journal.rateAnchors, { now: clock.now(), wallNow });
  if (moved.size > 0) await journal.noteRates({ at: wallNow, usd: Object.fromEntries(moved) });
}

function fetchEveryMs({ usd = DEFAULT_USD }: Policy): number {
  return Math.min(FETCH_EVERY_MS, Math.max(RETRY_MS, usd.maxAgeMs / 2));
}
