import type { AccountStatus } from '../../../src/worker/account-runtime.js';
import { describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { AccountDetails } from '../../../src/operator/account-details.js';
import { failsafeLogger } from '../../../src/base/logger.js';
import { warnAbout } from '../../../src/worker/monitoring/account-warnings.js';
import { RecentWork } from '../../../src/worker/monitoring/recent-work.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { throwingLogger } from '../../support/throwing-watchers.js';

const MINUTE_MS = 60_000;

const QUIET = {
  queued: 0,
  sending: 0,
  held: 0,
  unknown: 0,
  outboxUnreadable: 0,
  paused: false,
  sender: { owner: 'host:1', epoch: 1, heartbeat: 1 },
  oldestAgeMs: { queued: 0, sending: 0, in_progress: 0, unknown: 0 },
} as unknown as AccountStats;

const MONEY = { queued: [], currencies: [], covers: [], balanceAgeMs: undefined, unexplained: [] };

const WELL: AccountDetails = {
  ...{
    workers: [],
    stats: QUIET,
    due: 0,
    pollsDue: 0,
    stuck: 0,
    foreignSettings: [],
    notificationLagMs: undefined,
    money: MONEY,
    policyReport: undefined,
  },
};

it('warns of a balance that is below what is queued', () => {
  const covers = [
    { currency: 'BTC', balance: '1', queued: '2.5', isEnough: false },
    { currency: 'TRX', balance: '1', queued: '1', isEnough: true },
  ];
  expect(warnings({ money: { ...MONEY, covers } })).toEqual([
    expect.stringMatching(/^The balance is below what is queued \(1 BTC for 2\.5\): top the account up/),
  ]);
});

it('warns of a balance that fell without a payout that explains it', () => {
  const unexplained = [
    { currency: 'BTC', amount: '0' },
    { currency: 'TRX', amount: '12.5' },
  ];
  expect(warnings({ money: { ...MONEY, unexplained } })).toEqual([
    expect.stringMatching(/^The balance fell by 12\.5 TRX more than .*`payouts reconcile --account/),
  ]);
});

it.each([
  { ratesAt: 14, missing: null, told: false },
  { ratesAt: 16, missing: null, told: true },
  { ratesAt: null, missing: 0, told: false },
  { ratesAt: null, missing: 1, told: true },
  { ratesAt: null, missing: null, told: false },
])('warns of rates in dollars that are old or missing: $ratesAt, $missing minutes', ({ ratesAt, missing, told }) => {
  const before = (minutes: number | null): number | null =>
    minutes === null ? null : Date.now() - minutes * MINUTE_MS;
  const policyReport = {
    ...{ hash: '', at: 0, rules: [], held: [], ratesAt: before(ratesAt), ratesMissingSince: before(missing) },
  };
  expect(warnings({ policyReport })).toEqual(
    told ? [expect.stringMatching(/^Rates in dollars: (fetched 16|missing for 1)/)] : [],
  );
});

it('warns of held payouts', () => {
  expect(warnings({ stats: { ...QUIET, held: 2 } })).toEqual([
    expect.stringMatching(/^2 payouts held, and not sent: see `payouts list --account \S+ --state held`/),
  ]);
});

it('warns of a pause that is gone, and of which no operator signed the end, until something is sent', () => {
  const work = newWork();
  work.observer.signatureRefused('unsigned', false);
  expect(warnings({}, work)).toEqual([]);
  work.observer.signatureRefused('resume', true);
  expect(warnings({}, work)).toEqual([
    expect.stringMatching(/^A pause is gone from Redis.*`payouts resume .*--key FILE/),
  ]);
  expect(warnings({ stats: { ...QUIET, paused: true } }, work)).toEqual([]);
  work.observer.sent('accepted', 1);
  expect(warnings({}, work)).toEqual([]);
});

it('warns of an archive that cannot be written, until it can', () => {
  const work = newWork();
  work.noteArchive('The archive /a cannot be written: ENOSPC');
  expect(warnings({}, work)).toEqual([
    'Old payouts stay in Redis, and it grows: The archive /a cannot be written: ENOSPC.',
  ]);
  work.noteArchive(undefined);
  expect(warnings({}, work)).toEqual([]);
});

let now = 0;

function newWork(): RecentWork {
  return new RecentWork({ ...systemClock, now: () => now }, noObserver);
}

function warnings(
  details: Partial<AccountDetails> | undefined,
  work = newWork(),
  status: AccountStatus = { role: 'sender', epoch: 1 },
  clockOffsetMs = 4_900,
): string[] {
  return warnAbout({
    platformId: 7,
    status,
    keyring: undefined,
    policy: undefined,
    journalHead: undefined,
    redisIsUp: true,
    writeRefusal: undefined,
    clockOffsetMs,
    details: details && { ...WELL, ...details },
    work,
  });
}

const withStats = (stats: Partial<AccountStats>): AccountStats => ({ ...QUIET, ...stats });

it('warns of nothing where all is well, and where Redis is unavailable', () => {
  expect(warnings({})).toEqual([]);
  expect(warnings(undefined)).toEqual([]);
});

it('warns of unknown and stuck payouts, settings made by hand and a clock that is off', () => {
  const foreignSettings = [{ queue: 'withdraw', detail: 'paused in BullMQ, so no job runs', command: 'HDEL x' }];
  const found = { stats: withStats({ unknown: 2 }), stuck: 1, foreignSettings };
  expect(warnings(found, newWork(), { role: 'sender', epoch: 1 }, -5_100)).toEqual([
    expect.stringMatching(/^2 payouts may or may not have been sent: .*payouts resolve/),
    expect.stringMatching(/^1 payout in progress for longer than STUCK_AFTER_MS/),
    expect.stringMatching(/withdraw queue: paused in BullMQ/),
    expect.stringMatching(/^The wall clock is 5\.1 s behind the clock of Redis/),
  ]);
});

describe('a send that was put back', () => {
  it('is told with its reason until one is sent', () => {
    const work = newWork();
    const waiting = { stats: withStats({ queued: 1 }) };
    work.observer.notSent('ENOSPC', 250);
    work.observer.notSent('ECONNREFUSED', 250);
    expect(warnings(waiting, work)).toEqual([expect.stringMatching(/^The last 2 attempts .*: ECONNREFUSED$/)]);
    work.observer.sent('accepted', 10);
    expect(warnings(waiting, work)).toEqual([]);
  });

  it('is no matter once no payout waits', () => {
    const work = newWork();
    work.observer.notSent('ECONNREFUSED', 250);
    expect(warnings({}, work)).toEqual([]);
  });
});

it('warns of nothing that went wrong before another process got the account', () => {
  const work = newWork();
  work.observer.notSent('ENOSPC', 250);
  for (let poll = 0; poll < 3; poll += 1) work.observer.polled('error', 'HTTP 500');
  const waiting = { stats: withStats({ queued: 1 }) };
  expect(warnings(waiting, work)).toHaveLength(2);
  work.endSending();
  work.endPolling();
  expect(warnings(waiting, work, { role: 'standby' })).toEqual([]);
});

describe('payouts that are due and not sent', () => {
  const stats = withStats({ queued: 1, oldestAgeMs: { ...QUIET.oldestAgeMs, queued: 20 * MINUTE_MS } });

  it('are told after ten minutes without a send', () => {
    const work = newWork();
    now += 10 * MINUTE_MS - 1;
    expect(warnings({ stats, due: 1 }, work)).toEqual([]);
    now += 1;
    expect(warnings({ stats, due: 1 }, work)).toEqual([expect.stringMatching(/^1 payout could be sent, .* 10 min/)]);
    // Another process sends for it, one every second perhaps.
    expect(warnings({ stats, due: 1 }, work, { role: 'standby' })).toEqual([]);
    work.observer.sent('accepted', 10);
    expect(warnings({ stats, due: 1 }, work)).toEqual([]);
  });

  it('are told ten minutes after this process got the account at the earliest', () => {
    const work = newWork();
    now += 60 * MINUTE_MS;
    work.beginSending();
    now += 10 * MINUTE_MS - 1;
    expect(warnings({ stats, due: 1 }, work)).toEqual([]);
    now += 1;
    expect(warnings({ stats, due: 1 }, work)).toHaveLength(1);
  });

  it('are no matter while they wait for their notBefore, are new, or the account is paused', () => {
    const work = newWork();
    now += 20 * MINUTE_MS;
    expect(warnings({ stats, due: 0 }, work)).toEqual([]);
    expect(warnings({ stats: { ...stats, paused: true }, due: 1 }, work)).toEqual([]);
    expect(warnings({ stats: withStats({ queued: 1 }), due: 1 }, work)).toEqual([]);
  });
});

it('warns of polls when three in a row failed', () => {
  const work = newWork();
  for (let poll = 0; poll < 2; poll += 1) work.observer.polled('error', 'HTTP 500');
  expect(warnings({}, work)).toEqual([]);
  work.observer.polled('error', 'HTTP 502');
  expect(warnings({}, work)).toEqual(['The last 3 status polls failed: HTTP 502']);
  work.observer.polled('in_progress');
  expect(warnings({}, work)).toEqual([]);
});

it('warns of a journal that is slow each time, not once', () => {
  const work = newWork();
  for (const ms of [150, 900, 120, 130]) work.observer.journalSynced(ms);
  expect(warnings({}, work)).toEqual([]);
  work.observer.journalSynced(140);
  expect(warnings({}, work)).toEqual([expect.stringMatching(/^Each entry of the send journal takes over 120 ms/)]);
  work.observer.journalSynced(2);
  expect(warnings({}, work)).toEqual([]);
});

it('warns of members of the outbox that nobody understands', () => {
  expect(warnings({ stats: withStats({ outboxUnreadable: 3 }) })).toEqual([
    expect.stringMatching(/^The outbox holds 3 members that this version does not understand/),
  ]);
});

it('tells of what it repaired for an hour since the last time', () => {
  const work = newWork();
  work.observer.jobsRecreated('queued', 2);
  now += 30 * MINUTE_MS;
  work.observer.jobsRecreated('in_progress', 3);
  work.observer.jobWorkerReplaced('withdraw');
  now += 59 * MINUTE_MS;
  expect(warnings({}, work)).toEqual([
    expect.stringMatching(/^5 jobs missing in Redis had to be added again/),
    expect.stringMatching(/^1 BullMQ worker hung and had to be replaced/),
  ]);
  now += MINUTE_MS;
  expect(warnings({}, work)).toEqual([]);
});

it('hands on what it notes', () => {
  const told: unknown[] = [];
  const observer = {
    ...noObserver,
    sent: (...args: unknown[]) => void told.push(args),
    notSent: (...args: unknown[]) => void told.push(args),
    polled: (...args: unknown[]) => void told.push(args),
    journalSynced: (...args: unknown[]) => void told.push(args),
  };
  const work = new RecentWork(systemClock, observer);
  work.observer.sent('accepted', 1);
  work.observer.notSent('a reason', 250);
  work.observer.polled('completed');
  work.observer.polled('error', 'HTTP 500');
  work.observer.journalSynced(2);
  expect(told).toEqual([['accepted', 1], ['a reason', 250], ['completed', undefined], ['error', 'HTTP 500'], [2]]);
});

// The last test: these stay lost for the whole process.
it('warns of log lines that were lost, also where Redis is unavailable', () => {
  failsafeLogger(throwingLogger).info({}, 'lost');
  const lost = [expect.stringMatching(/^1 log line could not be written: free the disk/)];
  expect([warnings({}), warnings(undefined)]).toEqual([lost, lost]);
});
