import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ArchiveFolder } from '../../src/archive/archive-files.js';
import { findArchived } from '../../src/archive/find-archived.js';
import { PayoutArchive } from '../../src/archive/payout-archive.js';
import { readArchive, type ArchivedPayout } from '../../src/archive/read-archive.js';
import type { Payout } from '../../src/ledger/payout.js';
import { FINAL_STATES, PAYOUT_STATES, type PayoutState } from '../../src/ledger/states.js';
import { silentLogger } from '../../src/base/logger.js';
import { applyRetention, removeSome, type RetentionStep } from '../../src/worker/retention.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { openTestAccount, type TestAccount } from '../ledger/support/test-account.js';
import { until } from '../support/until.js';

const DAY_MS = 24 * 60 * 60 * 1000;

let account: TestAccount;
let folder: ArchiveFolder;

beforeEach(async () => {
  account = openTestAccount();
  folder = { dir: join(await mkdtemp(join(tmpdir(), 'retention-')), 'archive'), platformId: account.platformId };
});
afterEach(async () => {
  await rm(join(folder.dir, '..'), { recursive: true, force: true });
  await account.close();
});

const statistics = {
  countRemoval: async (_: PayoutState, take: () => Promise<readonly unknown[]>) => (await take()).length,
};

const step = async (archive: PayoutArchive): Promise<RetentionStep> =>
  removeSome({ connection: account.connection, retentionDays: 2, statistics, archive });

async function cancelled(...payoutIds: readonly string[]): Promise<void> {
  await account.ledger.enqueue(payoutIds.map((payoutId) => aPayout(payoutId)));
  for (const payoutId of payoutIds) await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled' });
}

async function readAll(): Promise<ArchivedPayout[]> {
  const found: ArchivedPayout[] = [];
  const onDamage = (message: string): never => {
    throw new Error(message);
  };
  for await (const payouts of readArchive(folder, { onDamage })) found.push(...payouts);
  return found;
}

/** As they were in Redis. */
function withoutPlace(payouts: readonly ArchivedPayout[]): Payout[] {
  return payouts.map(
    (payout) =>
      Object.fromEntries(Object.entries(payout).filter(([name]) => name !== 'archivedIn')) as unknown as Payout,
  );
}

const ids = (payouts: readonly Payout[]): string[] => payouts.map(({ payoutId }) => payoutId);

/** An archive with something that happens after a payout is on disk, and before it is removed. */
class WatchedArchive extends PayoutArchive {
  readonly #after: (payouts: readonly Payout[]) => Promise<void>;

  constructor(after: (payouts: readonly Payout[]) => Promise<void>) {
    super(folder);
    this.#after = after;
  }

  override async keep(payouts: readonly Payout[]): Promise<void> {
    await super.keep(payouts);
    await this.#after(payouts);
  }
}

describe('retention with an archive', () => {
  it('has on disk what it removes, whole, before it removes it', async () => {
    await account.ledger.enqueue(PAYOUT_STATES.map((state) => aPayout(state, { batch: 'b', reference: 'Ä "1"' })));
    for (const state of FINAL_STATES) {
      await account.ledger.change({ payoutId: state, from: 'queued', to: 'sending' }).catch(() => undefined);
    }
    await account.ledger.change({ payoutId: 'cancelled', from: 'sending', to: 'unknown' });
    await account.ledger.change({ payoutId: 'cancelled', from: 'unknown', to: 'cancelled', by: 'ann', reason: 'why' });
    for (const to of ['completed', 'failed'] as const) {
      await account.ledger.change({ payoutId: to, from: 'sending', to: 'in_progress', txhash: `0x${to}` });
      const receipt = { key: 'w', at: '2030-01-01T00:00:00.000Z', signature: 's'.repeat(88) };
      await account.ledger.change({ payoutId: to, from: 'in_progress', to, fee: '0.1', receipt });
    }
    const before = await Promise.all(FINAL_STATES.map(async (state) => account.ledger.require(state)));
    account.clock.advance(2 * DAY_MS + 1);
    const archive = new WatchedArchive(async (payouts) => {
      expect(withoutPlace(await readAll())).toEqual(expect.arrayContaining([...payouts]));
      for (const { payoutId } of payouts) expect(await account.ledger.get(payoutId)).toBeDefined();
    });
    expect(await step(archive)).toMatchObject({ payouts: 3, archiveTrouble: undefined });
    const archived = await readAll();
    expect(withoutPlace(archived)).toEqual(expect.arrayContaining(before));
    expect(archived).toHaveLength(3);
    expect(archived[0]?.archivedIn).toBe(join(folder.dir, String(account.platformId), '2030-01-01.jsonl.gz'));
    for (const state of FINAL_STATES) expect(await account.ledger.get(state)).toBeUndefined();
  });

  it('archives nothing that is too young, and continues the file of a day', async () => {
    await cancelled('a');
    account.clock.advance(60_000);
    await cancelled('b');
    account.clock.advance(2 * DAY_MS - 60_000 + 1);
    const archive = new PayoutArchive(folder);
    expect((await step(archive)).payouts).toBe(1);
    expect(ids(await readAll())).toEqual(['a']);
    account.clock.advance(60_000);
    expect((await step(archive)).payouts).toBe(1);
    const archived = await readAll();
    expect(ids(archived)).toEqual(['b', 'a']);
    expect(new Set(archived.map(({ archivedIn }) => archivedIn)).size).toBe(1);
  });

  it('loses nothing, and shows nothing twice, where the process ends between writing and removing', async () => {
    await cancelled('a', 'b');
    account.clock.advance(3 * DAY_MS);
    const dying = new WatchedArchive(async () => Promise.reject(new Error('killed')));
    expect((await step(dying)).payouts).toBe(0);
    expect(await account.ledger.get('a')).toBeDefined();
    expect((await step(new PayoutArchive(folder))).payouts).toBe(2);
    expect(ids(await readAll())).toEqual(['b', 'a']);
  });

  it('writes again what it had written where the files are gone before the payouts are removed', async () => {
    await cancelled('a', 'b');
    account.clock.advance(3 * DAY_MS);
    let isFirst = true;
    const archive = new WatchedArchive(async () => {
      if (!isFirst) return;
      isFirst = false;
      await rm(folder.dir, { recursive: true });
      throw new Error('Redis fails here');
    });
    expect((await step(archive)).payouts).toBe(0);
    expect((await step(archive)).payouts).toBe(2);
    expect(ids(await readAll())).toEqual(['b', 'a']);
  });

  it('does not remove a payout that changed after it was read, until that is on disk too', async () => {
    await cancelled('a', 'b');
    account.clock.advance(3 * DAY_MS);
    let isFirst = true;
    const archive = new WatchedArchive(async () => {
      if (isFirst) await account.redis.hset(account.connection.keys.payout('a'), 'lateTxhash', '0xlate');
      isFirst = false;
    });
    expect((await step(archive)).payouts).toBe(1);
    expect(await account.ledger.get('a')).toMatchObject({ lateTxhash: '0xlate' });
    expect((await step(archive)).payouts).toBe(1);
    const found = await findArchived(folder, { payoutId: 'a' }, { onDamage: () => undefined });
    expect(found).toMatchObject({ lateTxhash: '0xlate' });
    expect(ids(await readAll())).toEqual(['a', 'b']);
  });

  it.each([
    ['lost a field', async (key: string) => account.redis.hdel(key, 'amount')],
    ['got another value', async (key: string) => account.redis.hset(key, 'amount', '13')],
  ])('nor one that %s', async (_, change) => {
    await cancelled('a');
    account.clock.advance(3 * DAY_MS);
    const archive = new WatchedArchive(async () => {
      await change(account.connection.keys.payout('a'));
    });
    expect((await step(archive)).payouts).toBe(0);
    expect(await account.redis.exists(account.connection.keys.payout('a'))).toBe(1);
  });

  it('clears the index of what an earlier removal left there', async () => {
    await cancelled('a');
    await account.redis.del(account.connection.keys.payout('a'));
    await step(new PayoutArchive(folder));
    expect(await account.redis.zcard(account.connection.keys.state('cancelled'))).toBe(0);
  });

  it('keeps a record that makes no sense, says so, and removes the others', async () => {
    await cancelled('a', 'altered', 'b');
    await account.redis.hset(account.connection.keys.payout('altered'), 'metadata', '{');
    account.clock.advance(3 * DAY_MS);
    const { payouts, archiveTrouble } = await step(new PayoutArchive(folder));
    expect(payouts).toBe(2);
    expect(archiveTrouble).toMatch(/payout altered cannot be read/);
    expect(await account.redis.exists(account.connection.keys.payout('altered'))).toBe(1);
    expect(ids(await readAll())).toEqual(['b', 'a']);
  });
});

describe('an archive that cannot be written', () => {
  it('keeps every payout in Redis, says why, and continues by itself', async () => {
    await cancelled('a');
    account.clock.advance(3 * DAY_MS);
    await writeFile(folder.dir, 'a file in place of the folder');
    const archive = new PayoutArchive(folder);
    const { payouts, archiveTrouble } = await step(archive);
    expect(payouts).toBe(0);
    expect(archiveTrouble).toMatch(/archive .* cannot be written: (ENOTDIR|EEXIST)/);
    expect(await account.ledger.get('a')).toMatchObject({ state: 'cancelled' });
    await rm(folder.dir);
    await mkdir(folder.dir);
    expect(await step(archive)).toMatchObject({ payouts: 1, archiveTrouble: undefined });
    expect(ids(await readAll())).toEqual(['a']);
  });

  it('holds nothing up where it hangs', async () => {
    await cancelled('a');
    account.clock.advance(3 * DAY_MS);
    const hanging = new WatchedArchive(async () => new Promise(() => undefined));
    const { payouts, archiveTrouble } = await step(hanging);
    expect(payouts).toBe(0);
    expect(archiveTrouble).toMatch(/not on disk within 5000 ms/);
  });

  it('is logged, and told to the metrics until it is over or the task of another process', async () => {
    await cancelled('a');
    account.clock.advance(3 * DAY_MS);
    await writeFile(folder.dir, 'a file in place of the folder');
    const stop = new AbortController();
    const told: (string | undefined)[] = [];
    const logged: string[] = [];
    const running = applyRetention(
      {
        ...{ connection: account.connection, retentionDays: 2, statistics, archive: new PayoutArchive(folder) },
        logger: { ...silentLogger, warn: (_, message) => void logged.push(message) },
        onArchiveTrouble: (trouble) => void told.push(trouble),
      },
      stop.signal,
    );
    await until('the trouble is told', () => told.length > 0);
    stop.abort();
    await running;
    expect(told).toEqual([expect.stringMatching(/cannot be written/), undefined]);
    expect(logged).toEqual(['old payouts stay in Redis']);
  });
});
