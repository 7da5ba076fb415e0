import { type Clock, within } from '../base/clock.js';
import type { RedisClient } from '../base/redis.js';
import { LedgerKeys } from '../ledger/keys.js';
import { pipelinedReadable } from '../ledger/ledger-connection.js';
import { readListedAccounts } from '../ledger/served-accounts.js';
import { STATES_WITH_JOB } from '../ledger/states.js';

/** A worker process reports every five seconds; a busy or restarting one may be late. */
const SILENT_AFTER_MS = 60_000;

const READ_WITHIN_MS = 3_000;

export interface UnservedAccount {
  readonly platformId: number;
  /** Payouts that a worker would send or follow. */
  readonly payouts: number;
}

/**
 * Finds accounts of this Redis that have payouts, and that no worker process works for: a mistyped number, or an account
 * that was taken out of the file of accounts. Nobody else would see them.
 */
export class UnservedAccounts {
  readonly #clock: Pick<Clock, 'now' | 'sleep'>;
  /** The last reports of each account, and since when they are the same: no clocks of two machines are compared. */
  #reports = new Map<number, { readonly text: string; readonly since: number }>();

  constructor(clock: Pick<Clock, 'now' | 'sleep'>) {
    this.#clock = clock;
  }

  /**
   * @param own - accounts of this process: other metrics say whether they have a worker
   * @returns none if Redis does not answer in time
   */
  async find(redis: RedisClient, own: readonly number[]): Promise<readonly UnservedAccount[]> {
    const found = this.#find(redis, own).catch(() => undefined);
    return (await within(READ_WITHIN_MS, found, this.#clock)) ?? [];
  }

  async #find(redis: RedisClient, own: readonly number[]): Promise<readonly UnservedAccount[]> {
    const listed = await readListedAccounts(redis);
    const others = listed.filter((platformId) => !own.includes(platformId));
    const looks = await Promise.all(others.map(async (platformId) => this.#look(redis, platformId)));
    const now = this.#clock.now();
    this.#reports = new Map(
      looks.map(({ platformId, reports: text }) => {
        const before = this.#reports.get(platformId);
        return [platformId, before?.text === text ? before : { text, since: now }];
      }),
    );
    return looks
      .filter(({ platformId, payouts, reports }) => payouts > 0 && (reports === '' || this.#isSilent(platformId, now)))
      .map(({ platformId, payouts }) => ({ platformId, payouts }));
  }

  #isSilent(platformId: number, now: number): boolean {
    return now - (this.#reports.get(platformId)?.since ?? now) >= SILENT_AFTER_MS;
  }

  async #look(redis: RedisClient, platformId: number): Promise<UnservedAccount & { readonly reports: string }> {
    const keys = new LedgerKeys(platformId);
    const { replies } = await pipelinedReadable({ redis }, (pipeline) => {
      pipeline.hvals(keys.workers);
      for (const state of STATES_WITH_JOB) pipeline.zcard(keys.state(state));
    });
    const [reports = [], ...counts] = replies as [string[]?, ...(number | undefined)[]];
    const payouts = counts.reduce<number>((sum, count = 0) => sum + count, 0);
    return { platformId, payouts, reports: reports.sort().join('\n') };
  }
}
