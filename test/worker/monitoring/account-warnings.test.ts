import { beforeEach, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { failsafeLogger } from '../../../src/base/logger.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { AccountDetails } from '../../../src/operator/account-details.js';
import type { AccountStatus } from '../../../src/worker/account-runtime.js';
import { warnAbout } from '../../../src/worker/monitoring/account-warnings.js';
import { RecentWork } from '../../../src/worker/monitoring/recent-work.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { throwingLogger } from '../../support/throwing-watchers.js';

const MINUTE_MS = 60_000;

const QUIET = {
  ...{ queued: 0, sending: 0, held: 0, unknown: 0, outboxUnreadable: 0, paused: false },
  sender: { owner: 'host:1', epoch: 1, heartbeat: 1 },
  oldestAgeMs: { queued: 0, sending: 0, in_progress: 0, unknown: 0 },
} as unknown as AccountStats;

const MONEY = { queued: [], currencies: [], covers: [], balanceAgeMs: undefined, unexplained: [] };

const WELL: AccountDetails = {
  ...{ workers: [], stats: QUIET, due: 0, pollsDue: 0, stuck: 0, foreignSettings: [], notificationLagMs: undefined },
  ...{ money: MONEY, policyReport: undefined },
};

let now = 0;
let work: RecentWork;
beforeEach(() => {
  work = new RecentWork({ ...systemClock, now: () => now }, noObserver);
});

type Given = Partial<Omit<AccountDetails, 'stats'>> & { readonly stats?: Partial<AccountStats> };

function warnings(given: Given | undefined = {}, about: Partial<Parameters<typeof warnAbout>[0]> = {}): string[] {
  const { stats, ...details } = given;
  return warnAbout({
    ...{ platformId: 7, status: { role: 'sender', epoch: 1 }, keyring: undefined, policy: undefined },
    ...{ journalHead: undefined, redisIsUp: true, writeRefusal: undefined, clockOffsetMs: 4_900, work },
    details: { ...WELL, ...details, stats: { ...QUIET, ...stats } },
    ...about,
  });
}

/** The warnings are like these, in order. */
function expectWarnings(given: Given, words: readonly RegExp[], about: Parameters<typeof warnings>[1] = {}): void {
  expect(warnings(given, about)).toEqual(words.map((each): unknown => expect.stringMatching(each)));
}

const STANDBY: { readonly status: AccountStatus } = { status: { role: 'standby' } };
const UNAVAILABLE = { details: undefined };
const WAITING: Given = { stats: { queued: 1 } };

it('warns of nothing where all is well, and where Redis is unavailable', () => {
  expect([warnings(), warnings({}, UNAVAILABLE)]).toEqual([[], []]);
});

const COVERS = [
  { currency: 'BTC', balance: '1', queued: '2.5', isEnough: false },
  { currency: 'TRX', balance: '1', queued: '1', isEnough: true },
];
const UNEXPLAINED = [
  { currency: 'BTC', amount: '0' },
  { currency: 'TRX', amount: '12.5' },
];
const FOREIGN = [{ queue: 'withdraw', detail: 'paused in BullMQ, so no job runs', command: 'HDEL x' }];
it.each<[string, Given, readonly RegExp[]]>([
  [
    'a balance that is below what is queued',
    { money: { ...MONEY, covers: COVERS } },
    [/^The balance is below what is queued \(1 BTC for 2\.5\): top the account up/],
  ],
  [
    'a balance that fell without a payout that explains it',
    { money: { ...MONEY, unexplained: UNEXPLAINED } },
    [/^The balance fell by 12\.5 TRX more than .*`payouts reconcile --account/],
  ],
  [
    'held payouts',
    { stats: { held: 2 } },
    [/^2 payouts held, and not sent: see `payouts list --account \S+ --state held`/],
  ],
  [
    'members of the outbox that nobody understands',
    { stats: { outboxUnreadable: 3 } },
    [/^The outbox holds 3 members that this version does not understand/],
  ],
  [
    'unknown and stuck payouts, and settings made by hand',
    { stats: { unknown: 2 }, stuck: 1, foreignSettings: FOREIGN },
    [
      /^2 payouts may or may not have been sent: .*payouts resolve/,
      /^1 payout in progress for longer than STUCK_AFTER_MS/,
      /withdraw queue: paused in BullMQ/,
    ],
  ],
])('warns of %s', (_, given, words) => {
  expectWarnings(given, words);
});

it('warns of a wall clock that is off', () => {
  expectWarnings({}, [/^The wall clock is 5\.1 s behind the clock of Redis/], { clockOffsetMs: -5_100 });
});

it.each([
  [14, null, []],
  [16, null, [/^Rates in dollars: fetched 16/]],
  [null, 0, []],
  [null, 1, [/^Rates in dollars: missing for 1/]],
  [null, null, []],
])('warns of rates in dollars that are old or missing: %p, %p minutes', (ratesAt, missing, words) => {
  const before = (minutes: number | null): number | null =>
    minutes === null ? null : Date.now() - minutes * MINUTE_MS;
  const rates = { ratesAt: before(ratesAt), ratesMissingSince: before(missing) };
  expectWarnings({ policyReport: { hash: '', at: 0, rules: [], held: [], ...rates } }, words);
});

it('warns of a pause that is gone, and of which no operator signed the end, until something is sent', () => {
  work.observer.signatureRefused('unsigned', false);
  expectWarnings({}, []);
  work.observer.signatureRefused('resume', true);
  expectWarnings({}, [/^A pause is gone from Redis.*`payouts resume .*--key FILE/]);
  expectWarnings({ stats: { paused: true } }, []);
  work.observer.sent('accepted', 1);
  expectWarnings({}, []);
});

it('warns of an archive that cannot be written, until it can', () => {
  work.noteArchive('The archive /a cannot be written: ENOSPC');
  expectWarnings({}, [/^Old payouts stay in Redis, and it grows: The archive \/a cannot be written: ENOSPC\.$/]);
  work.noteArchive(undefined);
  expectWarnings({}, []);
});

it('warns of a send that was put back, with its reason, until one is sent or none waits', () => {
  work.observer.notSent('ENOSPC', 250);
  work.observer.notSent('ECONNREFUSED', 250);
  expectWarnings(WAITING, [/^The last 2 attempts .*: ECONNREFUSED$/]);
  expectWarnings({}, []);
  work.observer.sent('accepted', 10);
  expectWarnings(WAITING, []);
});

it('warns of polls when three in a row failed', () => {
  for (let poll = 0; poll < 2; poll += 1) work.observer.polled('error', 'HTTP 500');
  expectWarnings({}, []);
  work.observer.polled('error', 'HTTP 502');
  expectWarnings({}, [/^The last 3 status polls failed: HTTP 502$/]);
  work.observer.polled('in_progress');
  expectWarnings({}, []);
});

it('warns of nothing that went wrong before another process got the account', () => {
  work.observer.notSent('ENOSPC', 250);
  for (let poll = 0; poll < 3; poll += 1) work.observer.polled('error', 'HTTP 500');
  expect(warnings(WAITING)).toHaveLength(2);
  work.endSending();
  work.endPolling();
  expectWarnings(WAITING, [], STANDBY);
});

describe('payouts that are due and not sent', () => {
  const stats = { queued: 1, oldestAgeMs: { ...QUIET.oldestAgeMs, queued: 20 * MINUTE_MS } };
  const DUE: Given = { stats, due: 1 };
  const TOLD = /^1 payout could be sent, .* 10 min/;

  it('are told after ten minutes without a send', () => {
    now += 10 * MINUTE_MS - 1;
    expectWarnings(DUE, []);
    now += 1;
    expectWarnings(DUE, [TOLD]);
    // Another process sends for it, one every second perhaps.
    expectWarnings(DUE, [], STANDBY);
    work.observer.sent('accepted', 10);
    expectWarnings(DUE, []);
  });

  it('are told ten minutes after this process got the account at the earliest', () => {
    now += 60 * MINUTE_MS;
    work.beginSending();
    now += 10 * MINUTE_MS - 1;
    expectWarnings(DUE, []);
    now += 1;
    expectWarnings(DUE, [TOLD]);
  });

  it('are no matter while they wait for their notBefore, are new, or the account is paused', () => {
    now += 20 * MINUTE_MS;
    expectWarnings({ stats, due: 0 }, []);
    expectWarnings({ stats: { ...stats, paused: true }, due: 1 }, []);
    expectWarnings({ ...WAITING, due: 1 }, []);
  });
});

it('warns of a journal that is slow each time, not once', () => {
  for (const ms of [150, 900, 120, 130]) work.observer.journalSynced(ms);
  expectWarnings({}, []);
  work.observer.journalSynced(140);
  expectWarnings({}, [/^Each entry of the send journal takes over 120 ms/]);
  work.observer.journalSynced(2);
  expectWarnings({}, []);
});

it('tells of what it repaired for an hour since the last time', () => {
  work.observer.jobsRecreated('queued', 2);
  now += 30 * MINUTE_MS;
  work.observer.jobsRecreated('in_progress', 3);
  work.observer.jobWorkerReplaced('withdraw');
  now += 59 * MINUTE_MS;
  expectWarnings({}, [
    /^5 jobs missing in Redis had to be added again/,
    /^1 BullMQ worker hung and had to be replaced/,
  ]);
  now += MINUTE_MS;
  expectWarnings({}, []);
});

it('hands on what it notes', () => {
  const told: unknown[] = [];
  const note = (...args: unknown[]): void => void told.push(args);
  const observer = { ...noObserver, sent: note, notSent: note, polled: note, journalSynced: note };
  const { observer: own } = new RecentWork(systemClock, observer);
  own.sent('accepted', 1);
  own.notSent('a reason', 250);
  own.polled('completed');
  own.polled('error', 'HTTP 500');
  own.journalSynced(2);
  expect(told).toEqual([['accepted', 1], ['a reason', 250], ['completed', undefined], ['error', 'HTTP 500'], [2]]);
});

// The last test: these stay lost for the whole process.
it('warns of log lines that were lost, also where Redis is unavailable', () => {
  failsafeLogger(throwingLogger).info({}, 'lost');
  const lost = [/^1 log line could not be written: free the disk/];
  expectWarnings({}, lost);
  expectWarnings({}, lost, UNAVAILABLE);
});
