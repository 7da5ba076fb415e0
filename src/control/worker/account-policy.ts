import { basename } from 'node:path';
import { every, isAborted } from '../../base/clock.js';
import type { PolicyReport } from '../../ledger/reads/policy-report.js';
import type { SendAuthority } from '../../worker/sender/send-authority.js';
import type { ControlAccount, PolicedRuntime } from '../control-runtime.js';
import { describePolicy } from '../policy/decide.js';
import type { CurrentPolicy } from '../policy/current-policy.js';
import { DEFAULT_USD, type Policy } from '../policy/policy.js';
import { isInDollars } from '../policy/rule.js';
import type { UsdRates } from '../policy/usd-rates.js';
import { type HeldPayouts, HoldReleaser } from './hold-releaser.js';
import { PolicyAuthority } from './policy-authority.js';

type PolicyRuntime = Omit<PolicedRuntime, 'audience' | 'connection'>;

const RETRY_MS = 1_000;
/** The journal holds spends in memory until they are taken. */
const REMEMBER_EVERY_MS = 60_000;
const REPORT_EVERY_MS = 10_000;

export class AccountPolicy {
  readonly authority: PolicyAuthority;
  readonly publish: (report: PolicyReport) => Promise<void>;
  readonly #runtime: PolicyRuntime;
  readonly #releaser: HoldReleaser;
  #hasLease = false;
  #asksSince = 0;

  constructor(
    runtime: PolicyRuntime,
    signatures: SendAuthority | undefined,
    source: HeldPayouts,
    publish: AccountPolicy['publish'],
  ) {
    this.#runtime = runtime;
    this.publish = publish;
    this.authority = new PolicyAuthority(runtime, signatures);
    this.#releaser = new HoldReleaser(runtime, this.authority, source);
  }

  /** Learns what others spent and hold; waits while Redis is unavailable. Nothing may be sent before it resolves. */
  async takeOver(end: AbortSignal): Promise<void> {
    const { clock, logger } = this.#runtime;
    this.#hasLease = true;
    while (!isAborted(end)) {
      try {
        await this.#releaser.takeOver();
        return;
      } catch (error) {
        const { message } = error as Error;
        logger.warn({ error: message }, 'what was spent cannot be read yet; nothing is sent without it');
        await clock.sleep(RETRY_MS, end);
      }
    }
  }

  async keep(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#runtime;
    this.#asksSince = clock.wallNow();
    const onError = ({ message }: Error): void => {
      logger.debug({ error: message }, 'cannot report what the policy counts');
    };
    await Promise.all([
      this.#releaser.run(signal),
      keepRates(this.#runtime, this.authority.rates, signal),
      every(REPORT_EVERY_MS, async () => this.publish(this.#describe()), { clock, signal, onError }),
    ]);
    this.#hasLease = false;
  }

  #describe(): PolicyReport {
    const { clock, current } = this.#runtime;
    const { usage, hash, rates } = this.authority;
    const { oldestAt } = rates;
    const ratesAt = oldestAt === undefined ? null : clock.wallNow() - (clock.now() - oldestAt);
    const isMissing = ratesAt === null && current.policy.rules.some(isInDollars);
    const ratesMissingSince = isMissing ? this.#asksSince : null;
    const all = this.#releaser.held;
    const [held, heldWithoutRule] = [all.filter(({ rule }) => rule !== ''), all.filter(({ rule }) => rule === '')];
    const meanings = describePolicy(current.policy);
    return { hash, at: clock.wallNow(), rules: usage, held, heldWithoutRule, meanings, ratesAt, ratesMissingSince };
  }

  async standBy(end: AbortSignal): Promise<void> {
    const { clock, logger } = this.#runtime;
    const remember = (): void => {
      if (!this.#hasLease) this.authority.standBy();
    };
    const onError = ({ message }: Error): void => {
      logger.warn({ error: message }, 'what another process spends cannot be remembered, will try again');
    };
    await every(REMEMBER_EVERY_MS, remember, { clock, signal: end, onError });
  }
}

const PUBLISH_EVERY_MS = 1_000;

/** Publishes each loaded policy once, until the signal is aborted. It retries while Redis is unavailable. */
export async function publishLoaded(
  policy: Pick<CurrentPolicy, 'file' | 'takeLoaded'>,
  name: string,
  publish: (hash: string, about: string) => Promise<void>,
  { clock, logger }: Pick<ControlAccount, 'clock' | 'logger'>,
  signal: AbortSignal,
): Promise<void> {
  const about = `${basename(policy.file)}, by ${name}`;
  const waiting: string[] = [];
  const publishWaiting = async (): Promise<void> => {
    waiting.push(...policy.takeLoaded());
    for (let [hash] = waiting; hash !== undefined; [hash] = waiting) {
      await publish(hash, about);
      waiting.shift();
    }
  };
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot tell which policy was loaded yet');
  };
  await every(PUBLISH_EVERY_MS, publishWaiting, { clock, signal, onError });
}

type RatesRuntime = Pick<PolicedRuntime, 'current' | 'journal' | 'gateway' | 'clock' | 'logger'>;

/** The longest interval. A short `maxAge` shortens it, or payouts would wait between two queries. */
const FETCH_EVERY_MS = 5 * 60_000;
/** After a failed query: payouts wait for it. */
const FETCH_AGAIN_MS = 10_000;
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
    fetchAt = clock.now() + (rates.isUnconfirmed ? FETCH_AGAIN_MS : fetchEveryMs(current.policy));
    reported = undefined;
  };
  const fetchWhenDue = (): Promise<void> | undefined =>
    current.policy.rules.some(isInDollars) && clock.now() >= fetchAt ? fetch() : undefined;
  const onError = ({ message }: Error): void => {
    if (message !== reported) logger.warn({ error: message }, 'rates in dollars could not be fetched; payouts wait');
    reported = message;
    fetchAt = clock.now() + FETCH_AGAIN_MS;
  };
  await every(CHECK_EVERY_MS, fetchWhenDue, { clock, signal, onError });
}

async function fetchRates({ gateway, journal, clock }: RatesRuntime, rates: UsdRates): Promise<void> {
  const { currencies } = await gateway.readCurrencies();
  const known = currencies.flatMap(({ paymentId, usdRate }) =>
    usdRate === undefined ? [] : [[paymentId, usdRate] as const],
  );
  if (known.length === 0) throw new Error('/currencies: no item has a rate that is understood');
  const wallNow = clock.wallNow();
  const moved = rates.update(known, journal.rateAnchors, { now: clock.now(), wallNow });
  if (moved.size > 0) await journal.noteRates({ at: wallNow, usd: Object.fromEntries(moved) });
}

function fetchEveryMs({ usd = DEFAULT_USD }: Policy): number {
  return Math.min(FETCH_EVERY_MS, Math.max(FETCH_AGAIN_MS, usd.maxAgeMs / 2));
}
