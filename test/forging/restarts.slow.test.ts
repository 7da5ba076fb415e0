import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { systemClock } from '../../src/clock.js';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { until } from '../support/until.js';
import type { ForgedAccount } from './support/forged-account.js';
import { ForgingWorld } from './support/forging-world.js';
import { judgeBook } from './support/run-attacks.js';

/** Attacks between two runs of the worker: Redis flushed and put back as it was, journals that began new files, clocks. */

const LIFETIME_MS = 20_000;

interface Row {
  readonly name: string;
  /** While no worker runs; Redis is empty then, `old` is from before the send, `paid` from after it. */
  attack(account: ForgedAccount, old: Copy, paid: Copy): Promise<unknown>;
  readonly rotations?: number;
  readonly expect: 'held' | 'stopped';
  readonly reason?: string;
}

type Copy = ReadonlyMap<string, Buffer>;

const revive = async (account: ForgedAccount, _: Copy, paid: Copy): Promise<void> => {
  await restore(account, paid);
  await account.revive('P');
};

const ROWS: readonly Row[] = [
  {
    name: 'an old copy of everything after a flush',
    attack: async (account, old) => restore(account, old),
    expect: 'stopped',
  },
  {
    name: 'old records after a flush, the ledger begun again',
    attack: async (account, old) => {
      await restore(account, old, /:payout:/);
      await account.revive('P');
    },
    expect: 'stopped',
  },
  {
    name: 'an old record after a flush, in the newest ledger, with the attempt raised',
    attack: async (account, old, paid) => {
      await restore(account, paid);
      await account.redis.del(account.keys.payout('P'));
      await restore(account, old, /:payout:/);
      await account.revive('P', {
        attempt: '1',
        tokens: (await account.redis.hget(account.keys.sender, 'last')) ?? '',
      });
    },
    ...{ expect: 'held', reason: 'sent_before' },
  },
  {
    name: 'a paid payout after the journal began a new file',
    rotations: 1,
    attack: revive,
    expect: 'held',
    reason: 'sent_before',
  },
  {
    name: 'a paid payout after the journal began four files',
    rotations: 4,
    attack: revive,
    expect: 'held',
    reason: 'sent_before',
  },
  {
    name: 'a paid payout after four files, attempt lowered',
    rotations: 4,
    attack: async (account, _, paid) => {
      await restore(account, paid);
      await account.revive('P', { attempt: '0' });
    },
    expect: 'stopped',
  },
  {
    name: 'a paid payout after four files, attempt lowered below what any file names',
    rotations: 4,
    attack: async (account, _, paid) => {
      await restore(account, paid);
      await account.revive('P', { attempt: '-1' });
    },
    ...{ expect: 'held', reason: 'fields' },
  },
];
/** The last two accounts: what they were signed for is over when the second worker runs. */
const EXPIRED = ROWS.length;
const SET_BACK = ROWS.length + 1;

let world: ForgingWorld;

async function copyKeys(account: ForgedAccount): Promise<Copy> {
  const names = await account.redis.keys(`${account.keys.prefix}:*`);
  return new Map(await Promise.all(names.map(async (name) => [name, await account.redis.dumpBuffer(name)] as const)));
}

async function restore({ redis }: ForgedAccount, copy: Copy, names = /./): Promise<void> {
  for (const [name, value] of copy) if (names.test(name)) await redis.restore(name, 0, value, 'REPLACE');
}

async function rotate(account: ForgedAccount, times: number): Promise<void> {
  const path = join(world.journalDir, `${account.platformId}.journal`);
  for (let number = 1; number <= times; number += 1) {
    await rename(path, `${path}.${number}`);
    await (await FileSendJournal.open({ dir: world.journalDir, platformId: account.platformId })).close();
  }
}

beforeAll(async () => {
  world = await ForgingWorld.open(SET_BACK + 1);
  const startedAt = Date.now();
  for (const [index, account] of world.accounts.entries()) {
    const payout = { payoutId: 'P', paymentId: 6, amount: '12.5', addressTo: `bc1q${account.platformId}` };
    await account.enqueue(payout, index < EXPIRED ? {} : { lifetimeMs: LIFETIME_MS });
  }
  const old = await Promise.all(world.accounts.map(copyKeys));
  const first = await world.startWorker();
  await until('all are paid', async () => {
    const states = await Promise.all(world.accounts.map(async (account) => (await account.payout('P')).state));
    return states.every((state) => state === 'completed');
  });
  await first.stop();
  const paid = await Promise.all(world.accounts.map(copyKeys));
  await world.attacker.flushall();
  for (const [index, account] of world.accounts.entries()) {
    const row = ROWS[index];
    await rotate(account, row?.rotations ?? 0);
    await (row?.attack ?? revive)(account, old[index] ?? new Map(), paid[index] ?? new Map());
    if (row !== undefined && row.expect !== 'held') await account.ring('P');
  }
  await delay(Math.max(0, startedAt + LIFETIME_MS + 3_000 - Date.now()));
  const second = await world.startWorker();
  await until('the expired are held', async () => (await world.account(SET_BACK).payout('P')).state === 'held');
  await until('the expired are held', async () => (await world.account(EXPIRED).payout('P')).state === 'held');
  await delay(4_000);
  await second.stop();
}, 120_000);

afterAll(async () => {
  await world.close();
});

it.each(ROWS.map((row, index) => ({ ...row, index })))('$name: $expect', async ({ index, ...row }) => {
  const account = world.account(index);
  judgeBook(world, account);
  expect(world.sandbox.payments(account.platformId)).toHaveLength(1);
  const payout = await account.payout('P');
  if (row.expect === 'held') expect([payout.state, payout.held?.reason]).toEqual(['held', row.reason]);
  if (row.expect === 'stopped') expect(payout.state).toBe('queued');
});

it('what has expired is held for that', async () => {
  expect((await world.account(EXPIRED).payout('P')).held?.reason).toBe('expired');
});

it('with the clock set back, what had expired is known to be sent', async () => {
  const account = world.account(SET_BACK);
  await account.revive('P');
  await world.startWorker({ clock: { ...systemClock, wallNow: () => Date.now() - 60_000 } });
  await until('it is held', async () => (await account.payout('P')).held?.reason === 'sent_before');
  judgeBook(world, account);
  expect(world.sandbox.payments(account.platformId)).toHaveLength(1);
});
