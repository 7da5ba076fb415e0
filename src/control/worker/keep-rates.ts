import { every, type Clock } from '../../base/clock.js';
import type { GatewayClient } from '../../gateway/gateway-client.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { Logger } from '../../base/logger.js';
import { parseCurrencies } from '../../worker/keep-gateway-facts.js';
import { DEFAULT_USD, type Policy } from '../policy/policy.js';
import type { UsdRates } from '../policy/usd-rates.js';

interface KeepRatesOptions {
  readonly rates: UsdRates;
  readonly journal: Pick<SendJournal, 'rateAnchors' | 'noteRates'>;
  readonly policy: () => Policy;
  readonly gateway: Pick<GatewayClient, 'currencies'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

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
export async function keepRates(options: KeepRatesOptions, signal: AbortSignal): Promise<void> {
  const { policy, clock, logger } = options;
  let fetchAt = -Infinity;
  let reported: string | undefined;
  const fetch = async (): Promise<void> => {
    await fetchRates(options);
    // A rate seen once needs a second sight to count.
    fetchAt = clock.now() + (options.rates.isUnconfirmed ? RETRY_MS : fetchEveryMs(policy()));
    reported = undefined;
  };
  const fetchWhenDue = (): Promise<void> | undefined =>
    asksForDollars(policy()) && clock.now() >= fetchAt ? fetch() : undefined;
  const onError = ({ message }: Error): void => {
    if (message !== reported) logger.warn({ error: message }, 'rates in dollars could not be fetched; payouts wait');
    reported = message;
    fetchAt = clock.now() + RETRY_MS;
  };
  await every(CHECK_EVERY_MS, fetchWhenDue, { clock, signal, onError });
}

async function fetchRates({ gateway, rates, journal, clock }: KeepRatesOptions): Promise<void> {
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

export function asksForDollars({ rules }: Policy): boolean {
  return rules.some(({ when, cap }) => when.usdAbove !== undefined || cap?.unit === 'usd');
}
