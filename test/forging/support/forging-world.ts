import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from '@jest/globals';
import { Redis } from 'ioredis';
import type { PartialAccountSettings } from '../../../src/base/settings.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { createPayoutWorker, type PayoutWorker, type PayoutWorkerOptions } from '../../../src/control/payout-worker.js';
import { writeKeyring } from '../../control/support/key-files.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { until } from '../../support/until.js';
import { ForgedAccount, type SignedPayment } from './forged-account.js';
import { keyringEntries } from './signers.js';

const SECRET_KEY = 'k-forging-0123456789';
const FIRST_PLATFORM = 7_000;

/** The fastest that the settings allow, and a breaker that is in no test's way. */
const QUICK: PartialAccountSettings = {
  ...{ audience: TEST_AUDIENCE, intervalMs: 1_010, leaseMs: 1_000, quarantineMs: 0, inFlightMaxMs: 0 },
  ...{ pollMinMs: 200, pollMaxMs: 1_000, maxRejectionsInARow: 1_000, maxUnknownsInARow: 1_000 },
  ...{ balanceEveryMs: 0, currenciesEveryMs: 0 },
};

/** A Redis of its own, a gateway that keeps the book, and workers with a keyring. */
export class ForgingWorld {
  /** What workers said of signatures. */
  readonly refusals: { readonly platformId: number; readonly reason: string; readonly isTampering: boolean }[] = [];
  readonly redis!: LocalRedis;
  readonly sandbox!: Sandbox;
  readonly accounts!: readonly ForgedAccount[];
  readonly attacker!: Redis;
  readonly dir!: string;
  readonly #workers: PayoutWorker[] = [];

  private constructor(parts: Pick<ForgingWorld, 'redis' | 'sandbox' | 'accounts' | 'attacker' | 'dir'>) {
    Object.assign(this, parts);
  }

  /** Opens one before the tests of a file, and closes it after them. */
  static use(count: number, options: Partial<SandboxOptions> = {}): { readonly world: ForgingWorld } {
    let world: ForgingWorld | undefined;
    beforeAll(async () => {
      world = await ForgingWorld.open(count, options);
    }, 60_000);
    afterAll(async () => world?.close());
    return {
      get world() {
        if (world === undefined) throw new Error('It opens before the tests');
        return world;
      },
    };
  }

  static async open(count: number, options: Partial<SandboxOptions> = {}): Promise<ForgingWorld> {
    const redis = await startLocalRedis();
    const dir = await mkdtemp(join(tmpdir(), 'payouts-forging-'));
    const attacker = new Redis(redis.url, { maxRetriesPerRequest: null });
    const platforms = Array.from({ length: count }, (_, index) => FIRST_PLATFORM + index);
    const sandbox = await startSandbox({
      settleAfterMs: 100,
      ...options,
      accounts: platforms.map((platformId) => ({ platformId, secretKey: SECRET_KEY })),
    });
    await writeKeyring(join(dir, 'keys.json'), keyringEntries(Date.now()));
    // What was signed before a journal was begun is held.
    for (const platformId of platforms)
      await (await FileSendJournal.open({ dir: join(dir, 'journal'), platformId })).close();
    const accounts = platforms.map((platformId) => new ForgedAccount(platformId, redis.url, attacker));
    return new ForgingWorld({ redis, sandbox, accounts, attacker, dir });
  }

  get keysFile(): string {
    return join(this.dir, 'keys.json');
  }

  get journalDir(): string {
    return join(this.dir, 'journal');
  }

  account(index: number): ForgedAccount {
    const account = this.accounts[index];
    if (account === undefined) throw new Error(`There are ${this.accounts.length} accounts`);
    return account;
  }

  /** Waits until payouts of an account are in a state. */
  async untilIn(state: 'held' | 'completed', account: ForgedAccount, ...payoutIds: readonly string[]): Promise<void> {
    await until(`all are ${state}`, async () => account.isIn(state, ...payoutIds));
  }

  /** What the gateway's book has of an account, as addresses. */
  paidTo({ platformId }: ForgedAccount): readonly string[] {
    return this.sandbox.payments(platformId).map(({ addressTo }) => addressTo);
  }

  /** The book against what honest producers signed: nothing else, nothing altered, nothing twice, nothing too early. */
  judge(account: ForgedAccount): void {
    const bookOf = (payments: readonly Omit<SignedPayment, 'payoutId'>[]) =>
      payments.map(({ paymentId, amount, addressTo }) => ({ paymentId, amount, addressTo }));
    const signed = bookOf(account.signed);
    for (const payment of bookOf(this.sandbox.payments(account.platformId))) expect(signed).toContainEqual(payment);
    const addresses = this.paidTo(account);
    expect(addresses).toEqual([...new Set(addresses)]);
    const { smallestGapMs, blocked } = this.sandbox.stats(account.platformId);
    expect(smallestGapMs ?? Infinity).toBeGreaterThanOrEqual(1_000);
    expect(blocked).toBe(false);
  }

  /** Starts the real worker, for every account where none are named. */
  async startWorker(
    change: Partial<PayoutWorkerOptions> = {},
    settings: PartialAccountSettings = {},
    accounts: readonly ForgedAccount[] = this.accounts,
  ): Promise<PayoutWorker> {
    const worker = await createPayoutWorker({
      redisUrl: this.redis.url,
      journalDir: this.journalDir,
      keysFile: this.keysFile,
      accounts: accounts.map(({ platformId }) => ({
        ...{ ...QUICK, ...settings, platformId, baseUrl: this.sandbox.url, secretKey: SECRET_KEY },
      })),
      observe: (platformId) => ({
        ...noObserver,
        signatureRefused: (reason, isTampering) => void this.refusals.push({ platformId, reason, isTampering }),
      }),
      ...change,
    });
    this.#workers.push(worker);
    return worker;
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map(async (worker) => worker.stop()));
    await Promise.all(this.accounts.map(async (account) => account.close()));
    await this.attacker.quit();
    await this.sandbox.close();
    await this.redis.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}
