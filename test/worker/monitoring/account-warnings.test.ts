import { beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import { failsafeLogger } from '../../../src/base/logger.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { AccountDetails } from '../../../src/operator/account-details.js';
import { warnAbout } from '../../../src/worker/monitoring/account-warnings.js';
import { RecentWork } from '../../../src/worker/monitoring/recent-work.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { throwingLogger } from '../../support/throwing-watchers.js';

const MINUTE_MS = 60_000;

const QUIET = {
  ...{ queued: 0, sending: 0, held: 0, unknown: 0, outboxUnreadable: 0, unreadable: [], paused: false },
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
    atRisk: { drops: [], paidLate: undefined, tampering: undefined, otherPayment: undefined },
    notificationLagMs: undefined,
  },
  ...{ money: MONEY, lookUpWorks: false, policyReport: undefined },
};

let now = 0;
let work: RecentWork;
beforeEach(() => {
  work = new RecentWork({ ...systemClock, now: () => now }, noObserver);
});

type Given = Partial<Omit<AccountDetails, 'stats'>> & { readonly stats?: Partial<AccountStats> };

function expectWarnings(given: Given, words: readonly RegExp[], about: Partial<Parameters<typeof warnAbout>[0]> = {}) {
  const { stats, ...details } = given;
  const warnings = warnAbout({
    ...{ platformId: 7, status: { role: 'sender', epoch: 1 }, keyring: undefined, policy: undefined },
    ...{ journalHead: undefined, redisIsUp: true, writeRefusal: undefined, clockOffsetMs: 4_900, work },
    details: { ...WELL, ...details, stats: { ...QUIET, ...stats } },
    ...about,
  });
  expect(warnings).toEqual(words.map((each): unknown => expect.stringMatching(each)));
}

const STANDBY = { status: { role: 'standby' } } as const;
const WAITING: Given = { stats: { queued: 1 } };

it('warns of a wall clock that is off, and of nothing where all is well', () => {
  expectWarnings({}, []);
  expectWarnings({}, [], { details: undefined });
  expectWarnings({}, [/^The wall clock is 5\.1 s behind the clock of Redis/], { clockOffsetMs: -5_100 });
});

const COVERS = [
  { currency: 'BTC', balance: '1', queued: '2.5', isEnough: false },
  { currency: 'TRX', balance: '1', queued: '1', isEnough: true },
];
const UNEXPLAINED = ['0', '12.5'].map((amount, index) => ({ currency: ['BTC', 'TRX'][index] ?? '', amount }));
const FOREIGN = [{ queue: 'withdraw', detail: 'paused in BullMQ, so no job runs', command: 'HDEL x' }];
it.each<[string, Given, ...RegExp[]]>([
  ['low balance', { money: { ...MONEY, covers: COVERS } }, /^The balance is below what is queued \(1 BTC for 2\.5\):/],
  ['drop', { money: { ...MONEY, unexplained: UNEXPLAINED } }, /^The balance fell by 12\.5 TRX more than/],
  ['held payouts', { stats: { held: 2 } }, /^2 payouts held, and not sent/],
  ['keys', { stats: { unreadable: ['{payouts:7}:late'] } }, /^1 key in Redis cannot be read, .*: \{payouts:7\}:late\./],
  ['outbox', { stats: { outboxUnreadable: 3 } }, /^The outbox holds 3 members that this version/],
  ['unknown payouts', { stats: { unknown: 2 } }, /^2 payouts may or may not have been sent: .*payouts resolve/],
  ['stuck payouts', { stuck: 1 }, /^1 payout in progress for longer than STUCK_AFTER_MS/],
  ['settings made by hand', { foreignSettings: FOREIGN }, /withdraw queue: paused in BullMQ/],
])('warns of what the ledger says: %s', (_, given, ...words) => {
  expectWarnings(given, words);
});

it.each([
  [14, null, []],
  [16, null, [/^Rates in dollars: fetched 16/]],
  [null, 0, []],
  [null, 1, [/^Rates in dollars: missing for 1/]],
])('warns of rates in dollars that are old or missing: %p, %p minutes', (ratesAt, missing, words) => {
  const before = (minutes: number | null): number | null =>
    minutes === null ? null : Date.now() - minutes * MINUTE_MS;
  const rates = { ratesAt: before(ratesAt), ratesMissingSince: before(missing) };
  expectWarnings({ policyReport: { hash: '', at: 0, rules: [], held: [], ...rates } }, words);
});

type Told = readonly [name: string, ...args: unknown[]];
function tell(...all: readonly Told[]) {
  for (const [name, ...args] of all) {
    const to = name in work.observer ? work.observer : work;
    Reflect.apply(Reflect.get(to, name) as () => void, to, args);
  }
}
const SENT: Told = ['sent', 'accepted', 10];
const NOT_SENT: Told = ['notSent', 'ECONNREFUSED', 250];
const NOT_POLLED: Told = ['polled', 'error', 'HTTP 500'];
const synced = (...times: readonly number[]) => times.map((ms): Told => ['journalSynced', ms]);

it.each<[string, almost: readonly Told[], raise: readonly Told[], RegExp, ...clears: readonly Told[]]>([
  [
    'a pause that is gone without a signed resume',
    [['signatureRefused', 'unsigned', false]],
    [['signatureRefused', 'resume', true]],
    /^A pause is gone from Redis.*`payouts resume .*--key FILE/,
    SENT,
  ],
  [
    'an archive that cannot be written',
    [],
    [['noteArchive', 'The archive /a cannot be written: ENOSPC']],
    /^Old payouts stay in Redis, and it grows: The archive \/a cannot be written: ENOSPC\.$/,
    ['noteArchive', undefined],
  ],
  ['sends put back', [], [NOT_SENT, NOT_SENT], /^The last 2 attempts .*: ECONNREFUSED$/, SENT, ['endSending']],
  [
    'three polls in a row that failed',
    [NOT_POLLED, NOT_POLLED],
    [NOT_POLLED],
    /^The last 3 status polls failed: HTTP 500$/,
    ...[['polled', 'in_progress'] as const, ['endPolling'] as const],
  ],
  [
    'a journal that is slow each time, not once',
    synced(150, 900, 120, 130),
    synced(140),
    /^Each entry of the send journal takes over 120 ms/,
    ...synced(2),
  ],
])('warns of %s, until it is over', (_, almost, raise, words, ...clears) => {
  for (const clear of clears) {
    tell(...almost);
    expectWarnings(WAITING, []);
    tell(...raise);
    expectWarnings(WAITING, [words]);
    tell(clear);
    expectWarnings(WAITING, []);
  }
});

it('warns for an hour of a payment that ended without a receipt', () => {
  expectWarnings({}, []);
  tell(['receiptFailed', 'The ssh-agent cannot be reached: ENOENT']);
  now += 59 * MINUTE_MS;
  expectWarnings({}, [/^A payment ended without a receipt .*: The ssh-agent cannot be reached: ENOENT\. .*keys\.md/]);
  now += MINUTE_MS;
  expectWarnings({}, []);
});

const stats = { queued: 1, oldestAgeMs: { ...QUIET.oldestAgeMs, queued: 20 * MINUTE_MS } };
const DUE: Given = { stats, due: 1 };
const TOLD = /^1 payout could be sent, .* 10 min/;

it('payouts that are due are told after ten minutes without a send', () => {
  now += 60 * MINUTE_MS;
  work.beginSending();
  now += 10 * MINUTE_MS - 1;
  expectWarnings(DUE, []);
  now += 1;
  expectWarnings(DUE, [TOLD]);
  expectWarnings(DUE, [], STANDBY);
  work.observer.sent('accepted', 10);
  expectWarnings(DUE, []);
});

it('payouts that are due are no matter while they are early, new, or paused', () => {
  now += 20 * MINUTE_MS;
  expectWarnings({ stats, due: 0 }, []);
  expectWarnings({ stats: { ...stats, paused: true }, due: 1 }, []);
  expectWarnings({ ...WAITING, due: 1 }, []);
});

// The last test: these stay lost for the whole process.
it('warns of log lines that were lost, also where Redis is unavailable', () => {
  failsafeLogger(throwingLogger).info({}, 'lost');
  const lost = [/^1 log line could not be written: free the disk/];
  expectWarnings({}, lost);
  expectWarnings({}, lost, { details: undefined });
});
