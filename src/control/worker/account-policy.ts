import { basename } from 'node:path';
import { type Clock, every, followSignals, isAborted } from '../../base/clock.js';
import type { Logger } from '../../base/logger.js';
import type { GatewayClient } from '../../gateway/gateway-client.js';
import type { SendJournal } from '../../journal/send-journal.js';
import type { PayoutLedger } from '../../ledger/payout-ledger.js';
import type { PolicyReport } from '../../ledger/reads/policy-report.js';
import type { SenderLedger } from '../../ledger/sender-ledger.js';
import type { OutboxRelay } from '../../queues/outbox-relay.js';
import type { SendAuthority } from '../../worker/sender/send-authority.js';
import type { KeyFinder, Keyring } from '../keys/keyring.js';
import { type HeldPayouts, HoldWatch } from './hold-watch.js';
import { asksForDollars, keepRates } from './keep-rates.js';
import { PolicyAuthority, type PolicyInForce } from './policy-authority.js';

export interface AccountPolicyOptions {
  readonly platformId: number;
  readonly current: PolicyInForce;
  readonly signatures?: SendAuthority | undefined;
  readonly keyring?: (KeyFinder & Pick<Keyring, 'keys'>) | undefined;
  readonly journal: SendJournal;
  readonly ledger: Pick<PayoutLedger, 'change'>;
  readonly relay: Pick<OutboxRelay, 'tryDeliver'>;
  readonly source: HeldPayouts;
  readonly writeReport: (report: PolicyReport) => Promise<void>;
  readonly senderLedger: Pick<SenderLedger, 'holdPayout' | 'readSpends'>;
  readonly gateway: Pick<GatewayClient, 'currencies'>;
  readonly clock: Clock;
  readonly doubtMs: number;
  readonly rateMoveEveryMs?: number | undefined;
  readonly logger: Logger;
}

const RETRY_MS = 1_000;
/** The journal holds spends in memory until they are taken. */
const REMEMBER_EVERY_MS = 60_000;

export class AccountPolicy {
  readonly authority: PolicyAuthority;
  readonly #options: AccountPolicyOptions;
  readonly #watch: HoldWatch;
  #hasLease = false;
  /** When this process began to ask for rates, wall clock, ms. */
  #asksSince = 0;

  constructor(options: AccountPolicyOptions) {
    this.#options = options;
    const authority = (this.authority = new PolicyAuthority(options));
    this.#watch = new HoldWatch({ ...options, authority });
  }

  /** Learns what others spent and hold; waits while Redis is unavailable. Nothing may be sent before it resolves. */
  async takeOver(end: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    this.#hasLease = true;
    while (!isAborted(end)) {
      try {
        await this.#watch.takeOver();
        return;
      } catch (error) {
        logger.warn(
          { error: (error as Error).message },
          'what was spent cannot be read yet; nothing is sent without it',
        );
        await clock.sleep(RETRY_MS, end);
      }
    }
  }

  async keep(given: AbortSignal): Promise<void> {
    // Node warns about more than ten listeners on one signal.
    const { signal: end } = followSignals(given);
    const { current, gateway, journal, clock, logger } = this.#options;
    const { rates } = this.authority;
    this.#asksSince = clock.wallNow();
    const policy = (): PolicyInForce['policy'] => current.policy;
    const { writeReport: write } = this.#options;
    await Promise.all([
      this.#watch.run(end),
      keepRates({ rates, journal, policy, gateway, clock, logger }, end),
      reportPolicy({ describe: () => this.#describe(), write, clock, logger }, end),
    ]);
    this.#hasLease = false;
  }

  #describe(): PolicyReport {
    const { clock, current } = this.#options;
    const { usage, hash, rates } = this.authority;
    const { oldestAt } = rates;
    const ratesAt = oldestAt === undefined ? null : clock.wallNow() - (clock.now() - oldestAt);
    const isMissing = ratesAt === null && asksForDollars(current.policy);
    const ratesMissingSince = isMissing ? this.#asksSince : null;
    return { hash, at: clock.wallNow(), rules: usage, held: this.#watch.held, ratesAt, ratesMissingSince };
  }

  async standBy(end: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const remember = (): void => {
      if (!this.#hasLease) this.authority.standBy();
    };
    const onError = ({ message }: Error): void => {
      logger.warn({ error: message }, 'what another process spends cannot be remembered, will try again');
    };
    await every(REMEMBER_EVERY_MS, remember, { clock, signal: end, onError });
  }
}

interface ReportPolicyOptions {
  readonly describe: () => PolicyReport;
  readonly write: (report: PolicyReport) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const REPORT_EVERY_MS = 10_000;

/** Publishes how much of each window is used. It never delays a send. */
async function reportPolicy(options: ReportPolicyOptions, signal: AbortSignal): Promise<void> {
  const { describe, write, clock, logger } = options;
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot report what the policy counts');
  };
  await every(REPORT_EVERY_MS, async () => write(describe()), { clock, signal, onError });
}

interface TellPolicyOptions {
  readonly policy: {
    readonly file: string;
    /** Hashes since the last call. */
    takeLoaded(): readonly string[];
  };
  readonly name: string;
  readonly tell: (hash: string, about: string) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const CHECK_EVERY_MS = 1_000;

/** Publishes each loaded policy once, until the signal is aborted. It retries while Redis is unavailable. */
export async function tellPolicy(options: TellPolicyOptions, end: AbortSignal): Promise<void> {
  const { policy, name, tell, clock, logger } = options;
  const about = `${basename(policy.file)}, by ${name}`;
  const untold: string[] = [];
  const tellLoaded = async (): Promise<void> => {
    untold.push(...policy.takeLoaded());
    for (let [hash] = untold; hash !== undefined; [hash] = untold) {
      await tell(hash, about);
      untold.shift();
    }
  };
  const onError = ({ message }: Error): void => {
    logger.debug({ error: message }, 'cannot tell which policy was loaded yet');
  };
  await every(CHECK_EVERY_MS, tellLoaded, { clock, signal: end, onError });
}
