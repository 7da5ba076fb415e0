import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { silentLogger as logger } from '../../../src/base/logger.js';
import { closeRedis, connectRedis } from '../../../src/base/redis.js';
import { MemberRegistry, type MemberReport } from '../../../src/ledger/member-registry.js';
import { AccountSharing, GONE_AFTER_MS, MemberLives } from '../../../src/worker/sharing/account-sharing.js';
import { OwnReport } from '../../../src/worker/sharing/own-report.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { testRedisUrl } from '../../support/account.js';
import { SharedWorld, TAKEOVER_MS } from './support/shared-world.js';

/** A death is seen after three seconds without a heartbeat, at the next look. */
const NOTICED_WITHIN_MS = 5_000;

let world: SharedWorld;
afterEach(async () => world.close());
beforeEach(() => {
  world = new SharedWorld(0);
});

const movesOf = (): number[] => world.platformIds.map((platformId) => world.leases.get(platformId)?.moves ?? 0);

/** How many accounts another process got since then. */
const movedSince = (before: readonly number[]): number =>
  movesOf().filter((moves, index) => moves > (before[index] ?? 0)).length;

async function openWorld(count: number, ids: string): Promise<void> {
  world = new SharedWorld(count);
  for (const id of ids) world.start(id);
  await world.advance(5_000);
}

/** That each account has one that competes for it. */
function expectOneEach(): void {
  expect(world.platformIds.filter((platformId) => world.competitors(platformId).length !== 1)).toEqual([]);
}

const partsGiven = (): number[][] => world.processes.map(({ accounts }) => accounts.map(({ parts }) => parts.length));

describe('processes with the same accounts', () => {
  it('share them out, and one that is alone has all', async () => {
    await openWorld(12, 'a');
    expect(world.loads).toEqual({ a: 12 });
    world.start('b');
    world.start('c');
    await world.advance(5_000);
    expect(world.loads).toEqual({ a: 4, b: 4, c: 4 });
    expectOneEach();
  });

  it('a new one takes an n-th, and nothing else moves', async () => {
    await openWorld(120, 'abc');
    const before = movesOf();
    world.start('d');
    await world.advance(5_000);
    expect(world.loads).toEqual({ a: 30, b: 30, c: 30, d: 30 });
    expect(movedSince(before)).toBe(30);
  });

  it('one that stops in good order hands over within seconds', async () => {
    await openWorld(12, 'abc');
    const before = movesOf();
    const [first] = world.processes;
    void first?.stop();
    await world.advance(4_000);
    expect(world.loads).toEqual({ a: 0, b: 6, c: 6 });
    expect(movedSince(before)).toBe(4);
  });

  it('one that stands still for four seconds keeps its leases, and nobody breaks off', async () => {
    await openWorld(12, 'abc');
    const before = movesOf();
    const [first, second] = world.processes;
    const [partsBefore] = partsGiven();
    first?.freeze();
    await world.advance(4_500);
    expect(second?.own.length).toBeGreaterThan(4);
    first?.thaw();
    await world.advance(3_000);
    expect(movedSince(before)).toBe(0);
    expect(partsGiven()[0]).toEqual(partsBefore);
    expectOneEach();
  });

  it('a registry that is deleted changes nothing', async () => {
    await openWorld(12, 'abc');
    const parts = partsGiven();
    world.heartbeats.clear();
    world.reports.clear();
    await world.advance(10_000);
    expect(partsGiven()).toEqual(parts);
    expect([...world.reports.keys()].sort()).toEqual(['a', 'b', 'c']);
  });

  it('one that died is taken out of the registry after a minute', async () => {
    await openWorld(4, 'ab');
    world.processes[0]?.kill();
    await world.advance(50_000);
    expect(world.heartbeats.has('a')).toBe(true);
    await world.advance(20_000);
    expect([...world.heartbeats.keys(), ...world.reports.keys()]).toEqual(['b', 'b']);
  });
});

describe('an account that its process refuses', () => {
  it('moves to another one, and does not come back at once', async () => {
    await openWorld(4, 'ab');
    const [a, b] = world.processes;
    const [moving] = a?.accounts.filter(({ part }) => part === 'send') ?? [];
    if (a === undefined || b === undefined || moving === undefined) throw new Error('nothing to move');
    moving.fitness = 'refused';
    await world.advance(3_000);
    expect(b.partOf(moving.platformId)).toBe('send');
    // What it does not try does not look broken.
    moving.fitness = 'fit';
    const there = b.accounts.find(({ platformId }) => platformId === moving.platformId);
    if (there === undefined) throw new Error('not there');
    there.fitness = 'refused';
    await world.advance(20_000);
    expect(b.partOf(moving.platformId)).toBe('send');
    await world.advance(60_000);
    expect(a.partOf(moving.platformId)).toBe('send');
  });

  it('does not wait for a process that still reads its journals', async () => {
    await openWorld(4, 'a');
    const late = world.start('b');
    for (const account of late.accounts) account.fitness = 'opening';
    await world.advance(10_000);
    expect(world.loads).toEqual({ a: 4, b: 0 });
    for (const account of late.accounts) account.fitness = 'fit';
    await world.advance(4_000);
    expect(world.loads).toEqual({ a: 2, b: 2 });
  });
});

describe('what a process does for the accounts of others', () => {
  it('is nothing with the same journals, and to watch with its own', async () => {
    world = new SharedWorld(3);
    world.start('a', { folder: 'shared' });
    const same = world.start('b', { folder: 'shared' });
    const other = world.start('c');
    const unnamed = world.start('d', { folder: undefined });
    await world.advance(5_000);
    const partsBeside = (own: readonly number[], process: typeof same): unknown[] =>
      process.accounts.filter(({ platformId }) => own.includes(platformId)).map(({ part }) => part);
    const ofA = world.processes[0]?.own ?? [];
    expect(ofA).toHaveLength(1);
    expect(partsBeside(ofA, same)).toEqual(['rest']);
    expect(partsBeside(ofA, other)).toEqual(['watch']);
    expect(partsBeside(ofA, unnamed)).toEqual(['watch']);
  });
});

describe('without a registry', () => {
  it('all compete for all accounts where it is refused, and share them out again later', async () => {
    await openWorld(6, 'ab');
    for (const process of world.processes) {
      process.registryError = new Error('NOPERM');
      process.patienceMs = 0;
    }
    await world.advance(2_000);
    expect(world.processes.map(({ own }) => own.length)).toEqual([6, 6]);
    for (const process of world.processes) process.registryError = undefined;
    await world.advance(5_000);
    expect(world.loads).toEqual({ a: 3, b: 3 });
  });

  it('everything stays as it is while Redis as a whole is unavailable, also for longer than a death takes', async () => {
    await openWorld(6, 'ab');
    const before = world.processes.map(({ own }) => own);
    for (const process of world.processes) process.registryError = new Error('Redis unavailable');
    await world.advance(60_000);
    expect(world.processes.map(({ own }) => own)).toEqual(before);
    const [first, second] = world.processes;
    if (first !== undefined) first.registryError = undefined;
    await world.advance(1_500);
    expect(first?.own).toEqual(before[0]);
    if (second !== undefined) second.registryError = undefined;
    await world.advance(5_000);
    expect(world.processes.map(({ own }) => own)).toEqual(before);
  });
});

describe('the loss of a host', () => {
  it('with 500 accounts on four: its accounts are sent for again in time, and no other moves', async () => {
    await openWorld(500, 'abcd');
    expect(world.loads).toEqual({ a: 125, b: 125, c: 125, d: 125 });
    const before = movesOf();
    world.processes[0]?.kill();
    await world.advance(NOTICED_WITHIN_MS);
    expectOneEach();
    await world.advance(TAKEOVER_MS);
    expect(movedSince(before)).toBe(125);
    const [, ...left] = Object.values(world.loads);
    expect(left.toSorted()).toEqual([166, 167, 167]);
    world.start('e');
    await world.advance(8_000);
    expect(world.loads).toMatchObject({ b: 125, c: 125, d: 125, e: 125 });
    expect(movedSince(before)).toBeLessThanOrEqual(250);
  });
});

describe('which members are alive', () => {
  let lives: MemberLives;
  let now: number;
  beforeEach(() => {
    lives = new MemberLives();
    now = 0;
  });

  /** Looks so often, for as long as this, at a registry that stays as it is. */
  function look(listed: Readonly<Record<string, string | undefined>>, forMs = 1_000, everyMs = 1_000): string {
    for (const end = now + forMs; now < end;) {
      now += everyMs;
      lives.note(new Map(Object.entries(listed)), now);
    }
    return [...lives.alive(now).keys()].join();
  }

  it('one that is seen for the first time is, and one that stands still is gone', () => {
    expect([look({ a: '1' }), look({ a: '1' }, GONE_AFTER_MS - 1_000), look({ a: '1' })]).toEqual(['a', 'a', '']);
    expect(look({ a: '2' })).toBe('a');
  });

  it('one that leaves is gone at once, and one that is not listed any more has its time', () => {
    look({ a: '1', b: '1', c: '1' });
    expect(look({ a: undefined, b: '2' })).toBe('b,c');
    expect([look({}), look({}, GONE_AFTER_MS)]).toEqual(['b,c', '']);
    expect(lives.forgotten(now + 3_600_000)).toEqual([]);
  });

  it('nothing is concluded from a time in which nobody looked, nor is one alive for ever where every look comes late', () => {
    look({ a: '1' });
    now += 10_000;
    expect([look({ a: '1' }), look({ a: '1' }, GONE_AFTER_MS)]).toEqual(['a', '']);
    const late = (): string => look({ b: '1' }, 1, 2_700);
    expect([late(), late(), late(), late()]).toEqual(['b', 'b', 'b', '']);
  });

  it('those that ended a minute ago are named, also those that said so', () => {
    look({ a: '1', b: undefined });
    expect(lives.forgotten(now)).toEqual([]);
    look({ a: '1', b: undefined }, 60_000);
    expect(lives.forgotten(now).sort()).toEqual(['a', 'b']);
  });
});

describe('the report of a process', () => {
  const reportOf = (...claims: number[]): Omit<MemberReport, 'version'> => ({
    ...{ folder: 'f', accounts: [1, 2], unfit: [], claims, held: [] },
  });

  /** @returns the version that was published */
  function tell(own: OwnReport, ...claims: number[]): number | undefined {
    const report = own.due(reportOf(...claims));
    if (report !== undefined) own.notePublished(report);
    return report?.version;
  }

  it('is published when it changes, with a higher version, and every thirty seconds', async () => {
    const clock = new ManualClock();
    const own = new OwnReport(clock);
    expect([tell(own), tell(own), tell(own, 1)]).toEqual([1, undefined, 2]);
    expect(own.nextHeartbeat()).toEqual({ count: 1, version: 2 });
    await clock.advance(29_000);
    expect(tell(own, 1)).toBeUndefined();
    await clock.advance(1_000);
    expect(tell(own, 1)).toBe(2);
    own.publishAgain();
    expect([tell(own, 1), tell(own, 1)]).toEqual([2, undefined]);
    expect(own.nextHeartbeat()).toEqual({ count: 2, version: 2 });
  });

  it('never has the version of another one that may have been written without a reply', () => {
    const own = new OwnReport(new ManualClock());
    tell(own);
    expect(own.due(reportOf(1))).toMatchObject({ version: 2 });
    expect(own.nextHeartbeat()).toMatchObject({ version: 1 });
    expect(own.due(reportOf(1, 2))).toMatchObject({ version: 3, claims: [1, 2] });
    // What was published before is not what is there any more.
    expect(own.due(reportOf())).toMatchObject({ version: 4, claims: [] });
    expect([tell(own), tell(own)]).toEqual([4, undefined]);
  });
});

it('a process that stops during an exchange is not listed again by it', async () => {
  const redis = connectRedis(testRedisUrl(), 'commands');
  const id = randomUUID();
  const registry = new MemberRegistry(redis, id);
  let [begin, release] = [(): void => undefined, (): void => undefined];
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const slow = new Promise<void>((resolve) => (release = resolve));
  const real = registry.exchange.bind(registry);
  registry.exchange = async (heartbeat) => {
    begin();
    await slow;
    return real(heartbeat);
  };
  const nameFolder = async (): Promise<undefined> => Promise.resolve(undefined);
  const options = { id, accounts: [], clock: systemClock, logger, registry, nameFolder, patienceMs: () => Infinity };
  const sharing = new AccountSharing(options);
  sharing.start();
  await begun;
  const stopped = sharing.stop();
  release();
  await stopped;
  const { heartbeats } = await new MemberRegistry(redis, `${id}-other`).exchange({ count: 1, version: 0 });
  await registry.remove([id, `${id}-other`]);
  await closeRedis(redis);
  expect([...heartbeats].filter(([name]) => name === id)).toEqual([[id, undefined]]);
});
