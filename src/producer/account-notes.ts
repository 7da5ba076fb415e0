import { listAccount, wasEverServed } from '../ledger/served-accounts.js';
import type { LedgerAccess } from '../queues/open-ledger.js';

/** A Redis that came back older may have lost the note. */
const NOTE_EVERY_MS = 60 * 60 * 1_000;

type Account = Pick<LedgerAccess, 'ledger' | 'logger' | 'clock'>;

/** Notes on the account, beside the calls that enqueue: it neither delays nor fails them. */
export class AccountNotes {
  readonly #account: Account;
  readonly #notedAt = new Map<string, number>();
  #running: Promise<unknown> = Promise.resolve();

  constructor(account: Account) {
    this.#account = account;
  }

  /** Tells the workers on this Redis of the account: before payouts are accepted, because this process may end then. */
  list(): void {
    const { connection } = this.#account.ledger;
    this.#note('cannot tell the workers of the account', async () => listAccount(connection));
  }

  /**
   * Warns if no worker ever served the account: a mistyped account, or another Redis, would keep its payouts for good.
   * Once payouts were accepted: of a call that was refused nothing waits.
   */
  warnIfUnserved(): void {
    const { logger, ledger } = this.#account;
    const { platformId } = ledger.connection;
    this.#note('cannot see whether a worker serves the account', async () => {
      if (!(await wasEverServed(ledger.connection))) logger.warn({ platformId }, describeUnserved(platformId));
    });
  }

  async settled(): Promise<void> {
    await this.#running;
  }

  #note(failure: string, work: () => Promise<void>): void {
    const { clock, logger, ledger } = this.#account;
    const now = clock.now();
    if (now - (this.#notedAt.get(failure) ?? -Infinity) < NOTE_EVERY_MS) return;
    this.#notedAt.set(failure, now);
    const noting = work().catch((error: unknown) => {
      logger.debug({ platformId: ledger.connection.platformId, error: (error as Error).message }, failure);
    });
    this.#running = Promise.all([this.#running, noting]);
  }
}

function describeUnserved(platformId: number): string {
  return `no worker has ever served account ${platformId} on this Redis, so its payouts wait: start one, or check the account's number and REDIS_URL`;
}
