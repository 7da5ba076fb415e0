import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PayoutProducer } from '../../src/producer/payout-producer.js';
import type { AccountStats } from '../../src/ledger/account-stats.js';
import { addressOf, MAIN, PLATFORM_ID } from './account.js';
import { startChild, untilEnded } from './child-processes.js';

const LOOK_EVERY_MS = 150;

export interface PeopleOptions {
  readonly redisUrl: string;
  readonly dir: string;
  readonly journalDir: string;
  /** When each payout is enqueued, in ms since the chaos began. */
  readonly enqueueAtMs: readonly number[];
  readonly sinceChaosMs: () => number;
  readonly note: (text: string) => void;
}

/** The application that enqueues, and the operator who does what docs/operations.md says when an account is paused. */
export class People {
  readonly producer: PayoutProducer;
  readonly payoutIds: readonly string[];
  readonly #options: PeopleOptions;
  readonly #accepted = new Set<string>();
  readonly #stopped = new AbortController();
  #working: Promise<void> | undefined;
  /** How often the worker's refusal to send made the operator adopt the ledger. */
  adoptions = 0;

  constructor(options: PeopleOptions) {
    this.#options = options;
    this.producer = new PayoutProducer({ redisUrl: options.redisUrl, platformId: PLATFORM_ID });
    this.payoutIds = options.enqueueAtMs.map((_, index) => `P-${index + 1}`);
  }

  start(): void {
    this.#working ??= this.#work();
  }

  /** Redis came back older: the application asks again for all that it asked for, under the same payoutIds. */
  askAgain(): void {
    this.#accepted.clear();
  }

  /** @returns undefined while Redis is away */
  async readStats(): Promise<AccountStats | undefined> {
    return this.producer.stats().catch(() => undefined);
  }

  get haveAskedForAll(): boolean {
    return this.#accepted.size === this.payoutIds.length;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#working;
    await this.producer.close();
  }

  async #work(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#enqueueWhatIsDue();
      const stats = await this.readStats();
      if (stats?.paused === true) await this.#endPause(stats);
      await delay(LOOK_EVERY_MS);
    }
  }

  async #enqueueWhatIsDue(): Promise<void> {
    const { enqueueAtMs, sinceChaosMs } = this.#options;
    const due = this.payoutIds.filter(
      (payoutId, index) => (enqueueAtMs[index] ?? 0) <= sinceChaosMs() && !this.#accepted.has(payoutId),
    );
    if (due.length === 0) return;
    try {
      await this.producer.enqueueMany(
        due.map((payoutId) => ({ payoutId, paymentId: 1, amount: '0.01', addressTo: addressOf(payoutId) })),
      );
      for (const payoutId of due) this.#accepted.add(payoutId);
    } catch {
      // Redis is away: whether they were accepted is unclear, so the application asks again.
    }
  }

  async #endPause({ pausedBy, pausedReason }: AccountStats): Promise<void> {
    const refused = pausedBy === 'send journal';
    const command = refused ? ['adopt-ledger', '--yes'] : ['resume'];
    this.#options.note(`paused by ${String(pausedBy)} (${String(pausedReason)}): payouts ${command.join(' ')}`);
    const code = await this.#runCommand([...command, '--by', 'chaos', '--reason', 'as docs/operations.md says']);
    this.#options.note(`payouts ${command.join(' ')}: exit code ${String(code)}`);
    if (refused && code === 0) this.adoptions += 1;
  }

  async #runCommand(args: readonly string[]): Promise<number | null> {
    const child = startChild([MAIN, ...args], {
      logFile: join(this.#options.dir, 'operator.log'),
      environment: {
        REDIS_URL: this.#options.redisUrl,
        GATEWAY_PLATFORM_ID: String(PLATFORM_ID),
        SEND_JOURNAL_DIR: this.#options.journalDir,
      },
    });
    await untilEnded(child);
    return child.exitCode;
  }
}
