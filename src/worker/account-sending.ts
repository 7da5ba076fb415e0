import { every, untilAborted, within } from '../base/clock.js';
import { OrderLookUps } from '../ledger/order-look-ups.js';
import { writeGatewayFacts } from '../ledger/reads/gateway-facts.js';
import { type PublishedHead, publishJournalHead } from '../ledger/reads/workers.js';
import type { JournalHead } from '../ledger/sender-ledger.js';
import { JobReconciler } from '../queues/job-reconciler.js';
import type { AccountPart, AccountRuntime } from './account-runtime.js';
import { Janitor } from './janitor.js';
import { keepGatewayFacts } from './keep-gateway-facts.js';
import { addLateReceipts } from './late-receipts.js';
import { Reconciler } from './reconciliation/reconciler.js';
import { restoreLostJobs } from './restore-lost-jobs.js';
import { applyRetention } from './retention.js';
import { KeptPause } from './sender/kept-pause.js';
import type { SenderStatus } from './sender/send-report.js';
import type { ActiveSender } from './sender/send-until-decided.js';
import { SenderLoop } from './sender/sender-loop.js';
import { followJournal } from './sharing/open-sharing.js';
import { StatisticsKeeper } from './statistics/statistics-keeper.js';
import { WithdrawJobs } from './withdraw-jobs.js';

/**
 * Sends for an account in turns, as the process gets and gives up the account. Keeps what outlives a turn: pauses, and
 * the published head of the journal.
 */
export class AccountSending {
  readonly #runtime: AccountRuntime;
  readonly #pause: KeptPause | undefined;
  readonly #heads: JournalHeadPublisher;
  #loop: SenderLoop<AccountRuntime> | undefined;
  #holdsLease = false;
  #leases = 0;

  constructor(runtime: AccountRuntime) {
    this.#runtime = runtime;
    const { ledger, sendControl } = runtime;
    const authority = sendControl?.resumeAuthority;
    this.#pause = authority && new KeptPause(runtime, authority);
    this.#heads = new JournalHeadPublisher(runtime, async (head) => publishJournalHead(ledger.connection, head));
  }

  /** Undefined while this process does not send. */
  get journalHead(): PublishedHead | undefined {
    return this.#holdsLease ? this.#heads.published : undefined;
  }

  get status(): SenderStatus {
    return this.#loop?.status ?? { role: 'standby' };
  }

  get holdsLease(): boolean {
    return this.#holdsLease;
  }

  async standBy(end: AbortSignal): Promise<void> {
    await this.#runtime.sendControl?.standBy(end);
  }

  async rest(end: AbortSignal): Promise<void> {
    await followJournal(this.#runtime.journal, this.#runtime, end);
  }

  /** Works until the signal is aborted. Then it records the response of a send in progress and releases the lease. */
  async run(part: Exclude<AccountPart, 'rest'>, end: AbortSignal): Promise<void> {
    const runtime: AccountRuntime = { ...this.#runtime, onlyWatches: part !== 'send' };
    const leases = this.#leases;
    this.#loop = new SenderLoop(runtime, end, this.#work.bind(this), this.#pause);
    await this.#loop.run();
    this.#loop = undefined;
    // The next sender may publish the head of its own journal.
    if (this.#leases > leases) await this.#heads.publishLast();
  }

  /** Call it after the last outcome is journaled. */
  async close(): Promise<void> {
    const { journal, logger } = this.#runtime;
    await journal.close().catch((error: unknown) => {
      logger.warn({ error: (error as Error).message }, 'the send journal could not be closed');
    });
    await this.#heads.publishLast();
  }

  async #work(active: ActiveSender<AccountRuntime>, end: AbortSignal): Promise<void> {
    const { sendControl, work } = this.#runtime;
    this.#holdsLease = true;
    this.#leases += 1;
    work.beginSending();
    try {
      await sendControl?.takeOver(end);
      const publishing = this.#heads.keep(end);
      await doActiveWork(active, end);
      await publishing;
    } finally {
      this.#holdsLease = false;
      work.endSending();
    }
  }
}

/** A gateway's status may be ahead of its balance for this long, or for this many readings. */
const SETTLE_MS = 10 * 60_000;
const SETTLE_READINGS = 10;

/**
 * The lease holder's work: withdraw jobs, intact queues, retention. Resolves after the abort, once the send in progress
 * has its response.
 */
async function doActiveWork(active: ActiveSender<AccountRuntime>, end: AbortSignal): Promise<void> {
  const { runtime } = active;
  const { ledger, gateway, settings, control, sendControl, work, archive, logger } = runtime;
  const { balanceEveryMs, currenciesEveryMs, retentionDays } = settings;
  const { connection } = ledger;
  const jobs = new WithdrawJobs(active);
  const statistics = new StatisticsKeeper(connection, logger, () => work.takeGaps());
  const settleMs = Math.min(SETTLE_MS, SETTLE_READINGS * balanceEveryMs);
  const upkeep = [
    restoreLostJobs(runtime, new JobReconciler(ledger, runtime, logger), end),
    statistics.run(end),
    keepGatewayFacts(
      {
        ...{ connection, gateway, balanceEveryMs, currenciesEveryMs, logger },
        queuedPaymentIds: () => statistics.queuedPaymentIds,
        reconciler: new Reconciler(connection, settleMs, logger),
      },
      end,
    ),
    ...(sendControl === undefined ? [] : [sendControl.keep(end)]),
    ...(gateway.findPayment === undefined
      ? []
      : [
          new Janitor({
            ...{ ...runtime, lookUps: new OrderLookUps(connection) },
            publishEvidence: async (evidence) => writeGatewayFacts(connection, evidence),
          }).run(end),
        ]),
    ...(control?.receipts === undefined ? [] : [addLateReceipts(runtime, control.receipts, end)]),
    ...(retentionDays === undefined
      ? []
      : [
          applyRetention(
            {
              ...{ connection, retentionDays, archive, statistics, logger },
              onArchiveTrouble: (trouble) => {
                work.noteArchive(trouble);
              },
            },
            end,
          ),
        ]),
  ];
  await untilAborted(end);
  await jobs.close();
  await Promise.all(upkeep);
}

const PUBLISH_EVERY_MS = 10 * 60_000;

/** An unavailable Redis must not delay the end of the process. */
const PUBLISH_LAST_WITHIN_MS = 500;

/** Publishes the journal's last hash to log and events: only such a copy elsewhere shows cut-off lines. */
export class JournalHeadPublisher {
  readonly #runtime: Pick<AccountRuntime, 'journal' | 'clock' | 'logger'>;
  readonly #publishEvent: (head: JournalHead) => Promise<void>;
  #published: PublishedHead | undefined;
  #arrived: string | undefined;

  constructor(
    runtime: Pick<AccountRuntime, 'journal' | 'clock' | 'logger'>,
    publishEvent: (head: JournalHead) => Promise<void>,
  ) {
    this.#runtime = runtime;
    this.#publishEvent = publishEvent;
  }

  /** Undefined while this process does not write the journal. */
  get published(): PublishedHead | undefined {
    return this.#published;
  }

  /** Publishes at once and every ten minutes until the signal is aborted. Never delays a send. */
  async keep(end: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    await every(PUBLISH_EVERY_MS, async () => this.#publish(), { clock, signal: end, onError: this.#onError });
    this.#published = undefined;
  }

  /** Publishes a changed head after the last line is written. */
  async publishLast(): Promise<void> {
    if (this.#runtime.journal.head?.hash === this.#arrived) return;
    await within(PUBLISH_LAST_WITHIN_MS, this.#publish().catch(this.#onError));
  }

  /** The log has this head, and the next event follows. */
  readonly #onError = ({ message }: Error): void => {
    this.#runtime.logger.debug({ error: message }, 'cannot tell the head of the send journal');
  };

  async #publish(): Promise<void> {
    const { journal, clock, logger } = this.#runtime;
    const { head } = journal;
    if (head === undefined) return;
    const { hash, journalId, sends } = head;
    this.#published = { ...head, at: clock.wallNow() };
    logger.info({ head: hash, journalId, sends }, 'head of the send journal');
    await this.#publishEvent(head);
    this.#arrived = hash;
  }
}
