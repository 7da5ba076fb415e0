import { afterEach, describe, expect, it } from '@jest/globals';
import { SharedWorld, TAKEOVER_MS } from './support/shared-world.js';

/** A death is seen after three seconds without a heartbeat, at the next look. */
const NOTICED_WITHIN_MS = 5_000;

let world: SharedWorld;
afterEach(async () => world.close());

const movesOf = (): number[] => world.platformIds.map((platformId) => world.leases.get(platformId)?.moves ?? 0);

/** How many accounts another process got since then. */
const movedSince = (before: readonly number[]): number =>
  movesOf().filter((moves, index) => moves > (before[index] ?? 0)).length;

async function openWorld(count: number, ids: readonly string[]): Promise<SharedWorld> {
  world = new SharedWorld(count);
  for (const id of ids) world.start(id);
  await world.advance(5_000);
  return world;
}

describe('processes with the same accounts', () => {
  it('share them out, and one that is alone has all', async () => {
    await openWorld(12, ['a']);
    expect(world.loads).toEqual({ a: 12 });
    world.start('b');
    world.start('c');
    await world.advance(5_000);
    expect(world.loads).toEqual({ a: 4, b: 4, c: 4 });
    for (const platformId of world.platformIds) expect(world.competitors(platformId)).toHaveLength(1);
  });

  it('a new one takes an n-th, and nothing else moves', async () => {
    await openWorld(120, ['a', 'b', 'c']);
    const before = movesOf();
    world.start('d');
    await world.advance(5_000);
    expect(world.loads).toEqual({ a: 30, b: 30, c: 30, d: 30 });
    expect(movedSince(before)).toBe(30);
  });

  it('one that stops in good order hands over within seconds', async () => {
    await openWorld(12, ['a', 'b', 'c']);
    const before = movesOf();
    const [first] = world.processes;
    void first?.stop();
    await world.advance(4_000);
    expect(world.loads).toEqual({ a: 0, b: 6, c: 6 });
    expect(movedSince(before)).toBe(4);
  });

  it('one that stands still for four seconds keeps its leases, and nobody breaks off', async () => {
    await openWorld(12, ['a', 'b', 'c']);
    const before = movesOf();
    const [first, second] = world.processes;
    const partsOfFirst = (): number[] | undefined => first?.accounts.map(({ parts }) => parts.length);
    const partsBefore = partsOfFirst();
    first?.freeze();
    await world.advance(4_500);
    expect(second?.own.length).toBeGreaterThan(4);
    first?.thaw();
    await world.advance(3_000);
    expect(movedSince(before)).toBe(0);
    expect(partsOfFirst()).toEqual(partsBefore);
    for (const platformId of world.platformIds) expect(world.competitors(platformId)).toHaveLength(1);
  });

  it('a registry that is deleted changes nothing', async () => {
    await openWorld(12, ['a', 'b', 'c']);
    const parts = world.processes.map(({ accounts }) => accounts.map(({ parts: given }) => given.length));
    world.heartbeats.clear();
    world.reports.clear();
    await world.advance(10_000);
    expect(world.processes.map(({ accounts }) => accounts.map(({ parts: given }) => given.length))).toEqual(parts);
    expect([...world.reports.keys()].sort()).toEqual(['a', 'b', 'c']);
  });

  it('one that died is taken out of the registry after a minute', async () => {
    await openWorld(4, ['a', 'b']);
    world.processes[0]?.kill();
    await world.advance(50_000);
    expect(world.heartbeats.has('a')).toBe(true);
    await world.advance(20_000);
    expect([...world.heartbeats.keys(), ...world.reports.keys()]).toEqual(['b', 'b']);
  });
});

describe('an account that its process refuses', () => {
  it('moves to another one, and does not come back at once', async () => {
    await openWorld(4, ['a', 'b']);
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
    await openWorld(4, ['a']);
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
    await openWorld(6, ['a', 'b']);
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
    await openWorld(6, ['a', 'b']);
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
    await openWorld(500, ['a', 'b', 'c', 'd']);
    expect(world.loads).toEqual({ a: 125, b: 125, c: 125, d: 125 });
    const before = movesOf();
    world.processes[0]?.kill();
    await world.advance(NOTICED_WITHIN_MS);
    for (const platformId of world.platformIds) expect(world.competitors(platformId)).toHaveLength(1);
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
