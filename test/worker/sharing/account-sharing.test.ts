import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger as logger } from '../../../src/base/logger.js';
import type { MemberRegistry, MemberReport } from '../../../src/ledger/member-registry.js';
import type { AccountPart } from '../../../src/worker/account-runtime.js';
import {
  AccountSharing,
  GONE_AFTER_MS,
  MemberLives,
  type SharedAccount,
} from '../../../src/worker/sharing/account-sharing.js';
import { assignAccounts, type Member } from '../../../src/worker/sharing/assign-accounts.js';
import { OwnReport, type AccountFitness } from '../../../src/worker/sharing/own-report.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { Random } from '../../doubles/random.js';

/** How long it takes until the lease of a dead process is another's, in ms. */
const TAKEOVER_MS = 20_000;
/** A process that gives an account up finishes its send, and the next one looks once a second. */
const HANDOVER_MS = 1_500;
/** A death is seen after three seconds without a heartbeat, at the next look. */
const NOTICED_WITHIN_MS = 5_000;

class Account implements SharedAccount {
  part: AccountPart = 'rest';
  fitness: AccountFitness = 'fit';
  changes = 0;
  readonly platformId: number;
  readonly lease: Lease;
  readonly process: Process;

  constructor([platformId, lease]: [number, Lease], process: Process) {
    [this.platformId, this.lease, this.process] = [platformId, lease, process];
  }

  get holdsLease(): boolean {
    return this.lease.holder === this.process;
  }

  assign(part: AccountPart) {
    if (part !== this.part) this.changes += 1;
    this.part = part;
  }

  release(afterMs: number) {
    if (this.holdsLease) Object.assign(this.lease, { holder: undefined, freeAt: clock.now() + afterMs });
  }

  tendLease() {
    const { part, lease, fitness } = this;
    if (part !== 'send') this.release(HANDOVER_MS);
    else if (!lease.holder && clock.now() >= lease.freeAt && fitness === 'fit') {
      Object.assign(lease, { holder: this.process, moves: lease.moves + 1 });
    }
  }
}

class Process {
  readonly accounts: readonly Account[];
  readonly sharing: AccountSharing;
  registryError: Error | undefined;
  patienceMs = Infinity;
  isRunning = true;
  stopped = Promise.resolve();
  #goOn = (): void => undefined;

  constructor(id: string) {
    const accounts = (this.accounts = [...leases].map((entry) => new Account(entry, this)));
    const reach = async () => {
      await this.stopped;
      if (this.registryError !== undefined) throw this.registryError;
    };
    const registry: Pick<MemberRegistry, 'exchange' | 'report' | 'readReports' | 'leave' | 'remove'> = {
      exchange: async ({ count, version }) => {
        await reach();
        const wasListed = heartbeats.has(id);
        heartbeats.set(id, `${count} ${version}`);
        return { heartbeats: new Map(heartbeats), wasListed };
      },
      report: async (report) => reach().then(() => void reports.set(id, structuredClone(report))),
      readReports: async (ids) => reach().then(() => new Map([...reports].filter(([other]) => ids.includes(other)))),
      leave: async () => {
        await reach();
        heartbeats.set(id, undefined);
        reports.delete(id);
      },
      remove: async (ids) => {
        await reach();
        for (const other of ids) [heartbeats, reports].forEach((each) => each.delete(other));
      },
    };
    const nameFolder = async () => Promise.resolve(id);
    this.sharing = new AccountSharing({
      ...{ id, accounts, registry, nameFolder, clock, logger, patienceMs: () => this.patienceMs },
    });
    this.sharing.start();
    processes.push(this);
  }

  get own() {
    return this.accounts.filter(({ part }) => part === 'send').map(({ platformId }) => platformId);
  }

  freeze() {
    this.isRunning = false;
    this.stopped = new Promise((resolve) => (this.#goOn = resolve));
  }

  thaw() {
    this.isRunning = true;
    this.#goOn();
    this.stopped = Promise.resolve();
  }

  /** SIGKILL: each of its leases can be taken after the usual time. */
  kill() {
    this.freeze();
    for (const account of this.accounts) account.release(TAKEOVER_MS);
  }

  async stop() {
    this.thaw();
    await this.sharing.stop();
    for (const account of this.accounts) account.assign('rest');
    this.tendLeases();
    this.isRunning = false;
  }

  tendLeases() {
    if (this.isRunning) for (const account of this.accounts) account.tendLease();
  }
}

interface Lease {
  readonly holder: Process | undefined;
  readonly freeAt: number;
  readonly moves: number;
}

let clock: ManualClock;
let leases: ReadonlyMap<number, Lease>;
let heartbeats: Map<string, string | undefined>;
let reports: Map<string, MemberReport>;
let processes: Process[];
beforeEach(() => {
  clock = new ManualClock();
  leases = new Map();
  heartbeats = new Map();
  reports = new Map();
  processes = [];
});
afterEach(async () => clock.until(Promise.all(processes.map(async (process) => process.stop()))));

async function advance(ms: number) {
  for (let left = ms; left > 0; left -= 100) {
    await clock.advance(Math.min(100, left));
    for (const process of processes) process.tendLeases();
  }
}

async function start(count: number, ids: string): Promise<[Process, Process, ...Process[]]> {
  leases = new Map(range(count).map((id) => [id, { holder: undefined, freeAt: 0, moves: 0 }]));
  for (const id of ids) new Process(id);
  await advance(5_000);
  return processes as [Process, Process, ...Process[]];
}

const loads = () => processes.map((process) => [...leases.values()].filter(({ holder }) => holder === process).length);
const moves = () => [...leases.values()].reduce((sum, lease) => sum + lease.moves, 0);
function expectOneEach() {
  const owners = processes.filter(({ isRunning }) => isRunning).flatMap(({ own }) => own);
  expect(owners.sort((one, other) => one - other)).toEqual([...leases.keys()]);
}

it('with 500 accounts on four: those of a lost host move in time, and no others', async () => {
  const [first] = await start(500, 'abcd');
  expect([loads(), moves()]).toEqual([[125, 125, 125, 125], 500]);
  first.kill();
  await advance(NOTICED_WITHIN_MS);
  expectOneEach();
  await advance(TAKEOVER_MS);
  expect([moves(), loads().toSorted()]).toEqual([625, [0, 166, 167, 167]]);
  // After a minute the registry has forgotten it.
  await advance(40_000);
  expect([heartbeats.has('a'), reports.has('a')]).toEqual([false, false]);
  new Process('e');
  await advance(8_000);
  expect([moves(), loads()]).toEqual([750, [0, 125, 125, 125, 125]]);
});

it('one that stands still for four seconds keeps its leases; one that stops hands over', async () => {
  const [first, second] = await start(12, 'abc');
  first.freeze();
  await advance(4_500);
  expect(second.own.length).toBeGreaterThan(4);
  first.thaw();
  await advance(3_000);
  expect([moves(), loads()]).toEqual([12, [4, 4, 4]]);
  expectOneEach();
  void first.stop();
  await advance(4_000);
  expect([moves(), loads()]).toEqual([16, [0, 6, 6]]);
});

it('a registry that is deleted changes nothing', async () => {
  await start(12, 'abc');
  const changes = () => processes.flatMap(({ accounts }) => accounts.map((each) => each.changes));
  const before = changes();
  heartbeats.clear();
  reports.clear();
  await advance(10_000);
  expect(changes()).toEqual(before);
  expect([...reports.keys()].sort()).toEqual(['a', 'b', 'c']);
});

it('an account that its process refuses moves to another, and comes back after a while', async () => {
  const [a, b] = await start(4, 'ab');
  const [platformId = 0] = a.own;
  const [here, there] = [a, b].map(({ accounts }) => accounts[platformId - 1]);
  if (here === undefined || there === undefined) throw new Error('nothing to move');
  here.fitness = 'refused';
  await advance(3_000);
  expect(there.part).toBe('send');
  // What it does not try does not look broken.
  [here.fitness, there.fitness] = ['fit', 'refused'];
  await advance(20_000);
  expect(there.part).toBe('send');
  await advance(60_000);
  expect(here.part).toBe('send');
});

it('an account does not wait for a process that still reads its journals', async () => {
  await start(4, 'a');
  const { accounts } = new Process('b');
  for (const account of accounts) account.fitness = 'opening';
  await advance(10_000);
  expect(loads()).toEqual([4, 0]);
  for (const account of accounts) account.fitness = 'fit';
  await advance(4_000);
  expect(loads()).toEqual([2, 2]);
});

it('without Redis they stay as they are, and compete for all once patience ends', async () => {
  await start(6, 'ab');
  const owns = () => processes.map(({ own }) => own);
  const before = owns();
  for (const process of processes) process.registryError = new Error('Redis unavailable');
  await advance(60_000);
  expect(owns()).toEqual(before);
  for (const process of processes) process.patienceMs = 0;
  await advance(2_000);
  expect(owns().map(({ length }) => length)).toEqual([6, 6]);
  for (const process of processes) process.registryError = undefined;
  await advance(5_000);
  expect(loads()).toEqual([3, 3]);
});

const lives = new MemberLives();
let now = 0;
function look(heartbeat: number, forMs = 1_000) {
  for (const end = now + forMs; now < end;) {
    now += 1_000;
    lives.note(new Map([['a', `${heartbeat}`]]), now);
  }
  return lives.alive(now).has('a');
}

it('a member that stands still is gone; no looks prove nothing', () => {
  expect([look(1), look(1, GONE_AFTER_MS - 1_000), look(1), look(2)]).toEqual([true, true, false, true]);
  now += 10_000;
  expect([look(2), look(2, GONE_AFTER_MS)]).toEqual([true, false]);
});

it('a report is published when it changes and every thirty seconds, with a version of its own', async () => {
  const own = new OwnReport(clock);
  const due = (...claims: number[]) => own.due({ folder: 'f', accounts: [1, 2], unfit: [], claims, held: [] });
  const tell = (...claims: number[]) => {
    const report = due(...claims);
    if (report !== undefined) own.notePublished(report);
    return report?.version;
  };
  expect([tell(), tell(), tell(1)]).toEqual([1, undefined, 2]);
  await clock.advance(29_999);
  expect(tell(1)).toBeUndefined();
  await clock.advance(1);
  expect(tell(1)).toBe(2);
  // Without a reply: what was published before is not what is there any more.
  expect([due(), own.nextHeartbeat(), tell(1), tell(1)]).toMatchObject([{ version: 3 }, { version: 2 }, 4, undefined]);
});

const NONE: ReadonlySet<number> = new Set();
const range = (count: number, from = 1) => Array.from({ length: count }, (_, index) => from + index);

function aMember(id: string, accounts: readonly number[], more: Partial<Member> = {}): Member {
  return { id, accounts: new Set(accounts), unfit: NONE, claims: NONE, held: NONE, ...more };
}

function settled(members: readonly Member[]): Member[] {
  const owners = assignAccounts(members);
  return members.map((member) => {
    const own = new Set([...owners].filter(([, owner]) => owner === member.id).map(([platformId]) => platformId));
    return { ...member, claims: own, held: own };
  });
}

function anyMembers(random: Random): Member[] {
  const pick = (from: readonly number[], part: number): Set<number> => new Set(from.filter(() => random.chance(part)));
  const all = range(random.whole(1, 40));
  return range(random.whole(1, 6)).map((index) => {
    const accounts = random.chance(0.5) ? all : [...pick(all, random.next())];
    const claims = pick(accounts, random.next());
    const held = pick([...claims], 0.7);
    return aMember(`m${index}`, accounts, { claims, held, unfit: pick(accounts, random.chance(0.5) ? 0 : 0.3) });
  });
}

it('gives every account one fit owner, alike on all members, and leaves it there', () => {
  for (let seed = 1; seed <= 500; seed += 1) {
    const members = anyMembers(new Random(seed));
    const owners = assignAccounts(members);
    const known = new Set(members.flatMap(({ accounts }) => [...accounts]));
    expect([...owners.keys()].sort((one, other) => one - other)).toEqual([...known].sort((one, other) => one - other));
    for (const [platformId, ownerId] of owners) {
      const having = members.filter(({ accounts }) => accounts.has(platformId));
      const fit = having.filter(({ unfit }) => !unfit.has(platformId));
      expect((fit.length > 0 ? fit : having).map(({ id }) => id)).toContain(ownerId);
    }
    expect(assignAccounts(members.toReversed())).toEqual(owners);
    expect(assignAccounts(settled(members))).toEqual(owners);
  }
});
