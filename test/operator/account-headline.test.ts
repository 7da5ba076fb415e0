import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { systemClock } from '../../src/base/clock.js';
import { findBlockedReason } from '../../src/gateway/stop-sign.js';
import type { BalanceCover } from '../../src/ledger/reads/balance-cover.js';
import { silentLogger } from '../../src/base/logger.js';
import { acceptDrops, NO_SENDS, saveReconciliation } from '../../src/ledger/reads/reconciliation.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { type PolicyReport, writePolicyReport } from '../../src/ledger/reads/policy-report.js';
import { adoptLedger } from '../../src/ledger/adopt-ledger.js';
import { exportAccounts } from '../../src/operator/account-gauges.js';
import { AccountPoller, type LedgerObservation, SenderLifeTracker } from '../../src/operator/account-poller.js';
import { accountHeadline, type Headline, type HeadlineFacts } from '../../src/operator/account-headline.js';
import { type AccountAccess, openAccount } from '../../src/queues/open-account.js';
import { openSampleAccount, type SampleAccount, writeSampleWorker } from '../dashboard/support/sample-account.js';
import { testRedisUrl } from '../support/account.js';
import { until } from '../support/until.js';
import { readMetric } from '../worker/support/watched-worker.js';

/** What is said first of an account, and what a process beside the workers reports of it at each scrape. */

const NOW = 1_000_000;
const HOLDER = { owner: 'host:1:abc', epoch: 2, heartbeat: 9 };
const WORKER = { name: 'host:1', role: 'sender', at: NOW, startedAt: 0, version: '1', silentMs: 0 };
const LEDGER: LedgerObservation = {
  ...{ platformId: 7, ageMs: 0, wallNow: NOW, workers: [WORKER], pausedReason: undefined, objections: 0 },
  life: { ...HOLDER, kind: 'alive', silentMs: 300 },
  ...{ due: 5, sending: 0, held: 0, unknown: 0, sends: 9, sinceSendMs: 900, watchedMs: 60_000, readyMs: 60_000 },
};
const DROPS = [{ currency: 'USDT', amount: '3000000.000000000000000001' }];
const DAY_MS = 86_400_000;
type Change = Partial<LedgerObservation>;

const worker = (change: object, more: Change = {}): Change => ({ workers: [{ ...WORKER, ...change }], ...more });
const failed = (failedAttempts: number): Change =>
  worker({ lastError: 'No connection', lastErrorCode: 'GATEWAY_UNAVAILABLE', failedAttempts });
const unpolled = (failedPolls: number, more: Change = {}): Change =>
  worker({ pollError: 'No response', pollErrorCode: 'GATEWAY_UNAVAILABLE', failedPolls }, more);
const ended = (what: 'sends' | 'polls', agoMs: number, more: object = {}) => ({
  ended: { what, error: 'No connection', code: 'GATEWAY_UNAVAILABLE', count: 3, at: NOW - agoMs, ...more },
});
const refused = (reason: string, cause?: string): Change => worker({ role: 'refused', reason, cause });
const POLL_REFUSED = { pollError: 'The gateway refused /transactionstatus: unknown txhash' };
const NO_LEASE = { life: { kind: 'none' } } as const;
const SILENT = { life: { ...HOLDER, kind: 'silent', silentMs: 3_000 } } as const;

const judge = (change: Change, facts: HeadlineFacts = {}): Headline =>
  accountHeadline({ redis: { kind: 'up' }, ledger: { ...LEDGER, ...change } }, facts);
const looksLike = (message: string) => ({ pausedReason: findBlockedReason(message) });

it.each<[string, Change]>([
  ['good Sending', {}],
  ['good Idle', { due: 0 }],
  ['bad Paused', { pausedReason: 'maintenance' }],
  ['bad Paused', { due: 0, held: 2, pausedReason: 'maintenance' }],
  ['bad Paused: IP address not listed', looksLike('IP not whitelisted')],
  ['bad Paused: no permission', looksLike('no permission')],
  ['bad Paused', looksLike('account blocked')],
  ['bad Paused', { pausedReason: 'IP not whitelisted, says the gateway: ticket 7' }],
  ['bad Balance too low', { pausedReason: '5 rejections in a row, the last: insufficient balance' }],
  ['bad Stopped: ledger mismatch', { objections: 1, pausedReason: 'maintenance' }],
  ['bad Balance fell', { drops: DROPS, due: 0 }],
  ['bad Balance fell', { drops: DROPS, pausedReason: 'balance fell', ...NO_LEASE, workers: [] }],
  ['bad Stopped: ledger mismatch', { drops: DROPS, objections: 1 }],
  ['good Idle', { drops: [], due: 0 }],
  ['bad Paid late', { paidLate: { payoutId: 'p-1', at: NOW - DAY_MS }, pausedReason: 'maintenance' }],
  ['good Sending', { paidLate: { payoutId: 'p-1', at: NOW - DAY_MS - 1 } }],
  ['bad Another payment', { otherPayment: { payoutId: 'p-1', at: NOW - DAY_MS }, pausedReason: 'maintenance' }],
  ['good Sending', { otherPayment: { payoutId: 'p-1', at: NOW - DAY_MS - 1 } }],
  ['bad Tampering', { tampering: { payoutId: 'p-1', at: NOW - DAY_MS }, pausedReason: 'maintenance' }],
  ['good Sending', { tampering: { payoutId: 'p-1', at: NOW - DAY_MS - 1 } }],
  ['bad Sent too close', worker({ closeAt: NOW - DAY_MS, closeMs: 940 }, { pausedReason: 'maintenance' })],
  ['bad Sent too close', worker({ role: 'standby', closeAt: NOW, closeMs: 940 }, NO_LEASE)],
  ['good Sending', worker({ closeAt: NOW - DAY_MS - 1, closeMs: 940 })],
  [
    'bad Paused by the journal',
    { ...worker({ pauseKept: true }), writeRefusal: { reason: 'full', action: 'Free it.' } },
  ],
  ['bad No worker', { ...NO_LEASE, workers: [] }],
  ['warn Waiting for a sender', worker({ role: 'standby' }, NO_LEASE)],
  ['bad Sender without heartbeat', SILENT],
  ['warn Checking', { life: { ...HOLDER, kind: 'checking' } }],
  ['bad The worker refuses to send', refused('its journal')],
  ['bad Journal disk', refused('no answer', 'disk')],
  ['bad Redis cannot be used', refused('OOM', 'redis')],
  ['bad Redis cannot be used', { ...NO_LEASE, writeRefusal: { reason: 'it is full', action: 'Free it.' } }],
  ['warn Gateway down', failed(1)],
  ['bad Gateway down', failed(2)],
  ['bad Sending fails', worker({ lastError: 'ENOSPC' })],
  ['bad Journal disk', worker({ lastError: 'ENOSPC', lastErrorCode: 'JOURNAL_UNAVAILABLE' })],
  ['good Sending', unpolled(1)],
  ['bad Gateway down', unpolled(2)],
  ['warn Gateway down', unpolled(1, { due: 0 })],
  ['good Sending', worker(POLL_REFUSED)],
  ['warn Polling fails', worker(POLL_REFUSED, { due: 0 })],
  ['bad No response from the gateway', worker({ noResponse: true })],
  ['warn First send in 7 s', worker({ holdOffUntil: NOW + 7_500 })],
  ['warn Gateway slow', { sending: 1, sinceSendMs: 8_000 }],
  ['warn Gateway slow', worker({ slowAt: NOW - 40_000, slowMs: 8_000 })],
  ['good Sending', worker({ slowAt: NOW - 61_000, slowMs: 8_000 })],
  ['good Idle', worker({ slowAt: NOW - 40_000, slowMs: 8_000 }, { due: 0 })],
  ['warn Gateway down', worker(ended('sends', 59_000))],
  ['warn Gateway down', worker({ ...ended('sends', 10_000), slowAt: NOW - 61_000, slowMs: 8_000 })],
  ['good Sending', worker(ended('sends', 61_000))],
  ['good Sending', worker(ended('sends', 10_000, { count: 1 }))],
  ['good Idle', worker(ended('sends', 10_000), { due: 0 })],
  ['warn Journal disk', worker(ended('sends', 10_000, { code: 'JOURNAL_UNAVAILABLE' }))],
  ['warn Sending fails', worker(ended('sends', 10_000, { code: undefined }))],
  ['warn Polling fails', worker(ended('polls', 10_000, { code: undefined }), { due: 0 })],
  ['good Sending', worker(ended('polls', 10_000, { code: undefined }))],
  // Worse ones come at once.
  ['bad Paused', worker(ended('sends', 10_000), { pausedReason: 'maintenance' })],
  ['bad No response from the gateway', worker({ ...ended('sends', 10_000), noResponse: true })],
  ['warn Unknown payouts', worker(ended('sends', 10_000), { unknown: 1 })],
  ['bad Nothing is sent', worker(ended('sends', 30_000), { sinceSendMs: undefined, watchedMs: 20_000 })],
  ['bad Nothing is sent', { sinceSendMs: undefined, watchedMs: 20_000 }],
  ['good Sending', { sinceSendMs: 3_600_000, readyMs: 800 }],
  ['warn Holds payouts', { due: 0, held: 2 }],
  ['good Sending', { held: 2 }],
  ['warn Unknown payouts', { unknown: 2 }],
])('the headline is %s', (expected, change) => {
  const { tone, headline } = judge(change);
  expect(`${tone} ${headline}`).toBe(expected);
});

it.each<[string, HeadlineFacts, string]>([
  ['Rejected payouts', { stats: left({ rejected: 2 }), stuck: 1 }, 'The gateway refused 2 payouts'],
  ['Stuck in progress', { stats: left({}), stuck: 1 }, '1 payout in progress for too long, the oldest for 1 d 0 h'],
  ['Notifications late', { notificationLagMs: 300_000 }, 'The oldest event waits for 5 min'],
])('the headline is %s once nothing else waits', (headline, facts, detail) => {
  expect(judge({ due: 0 }, facts)).toMatchObject({
    ...{ tone: 'warn', headline, detail: expect.stringContaining(detail) },
    command: expect.stringContaining('--account 7'),
  });
  expect(judge({}, facts).headline).toBe('Sending');
  expect(judge({ due: 0, held: 1 }, facts).headline).toBe('Holds payouts');
  expect(judge({ due: 0 }, { stats: left({}), stuck: 0, notificationLagMs: 299_999 }).headline).toBe('Idle');
});

function left({ rejected = 0 }: { readonly rejected?: number }): NonNullable<HeadlineFacts['stats']> {
  const none = { queued: null, held: null, sending: null, unknown: null };
  return { rejected, oldestAgeMs: { ...none, in_progress: DAY_MS } };
}

it('names the replicas for want of which Redis refuses writes, and since when, as workers reported it before', () => {
  const since = '2030-01-31T12:00:00.000Z';
  const writeRefusal = { reason: 'too few', action: 'Restore them.', missing: ['10.0.0.2:1', '10.0.0.3:1'] };
  const found = judge(worker({ missing: [{ name: '10.0.0.3:1', since }] }, { writeRefusal }));
  expect(found).toMatchObject({ headline: 'Replicas missing', runbook: 'docs/runbooks/replicas-missing.md' });
  expect(found.detail).toBe(
    `Redis refuses writes: too few. 10.0.0.2:1 is missing. 10.0.0.3:1 is missing, since 2030-01-31 12:00:00 UTC at the latest. Restore them.`,
  );
});

it('says only that Redis does not respond, whatever was known before', () => {
  const redis = { kind: 'unavailable', sinceMs: 4_000, reason: 'no connection' } as const;
  const known = accountHeadline({ redis, ledger: LEDGER });
  expect(known).toMatchObject({ tone: 'bad', headline: 'Redis does not respond' });
  expect(known.detail).toContain('Workers that cannot reach it either');
  expect(accountHeadline({ redis, ledger: undefined }).detail).toContain('For 4 s: no connection');
});

it('says how many payouts are held, their sums, and what holds the first', () => {
  const held = { kind: 'policy', reason: 'refuse', rule: 'perDay', message: 'over 500 a day' } as const;
  const heldSums = [{ paymentId: 6, symbol: undefined, count: 2, amount: '77.5' }];
  const gateway = { failure: undefined, currencies: [{ paymentId: 6, name: 'USDT', usdRate: undefined }] };
  const ledger = { ...LEDGER, due: 0, held: 2 };
  const found = accountHeadline({ redis: { kind: 'up' }, ledger }, { gateway, heldSums, firstHeld: { held } });
  expect(found.detail).toMatch(/^2 payouts \(77\.5 USDT\), .* by the rule perDay, because: over 500 a day$/);
  expect(found.command).toBe('payouts list --account 7 --state held');
});

it('says of an account with nothing at all that it may be that of another Redis', () => {
  const empty = { ...NO_LEASE, workers: [], due: 0, sends: 0 };
  expect(judge(empty).detail).toMatch(
    /never had a send of the account: check REDIS_URL and the number of the account\.$/,
  );
  expect(judge({ ...empty, sends: 1 }).detail).not.toContain('REDIS_URL');
});

it('says that the balance is too low for what is queued, before anything is rejected, and what is missing', () => {
  const covers = [
    { currency: 'BTC', balance: '2', queued: '1', isEnough: true },
    { currency: 'USD', balance: '58.1', queued: '70', isEnough: false },
  ];
  const found = judge({}, { covers });
  expect(found).toMatchObject({
    tone: 'warn',
    headline: 'Balance too low',
    command: 'payouts gateway balance --account 7',
  });
  expect(found.detail).toContain('needs 70 USD, has 58.1');
  expect(judge({}, { covers: covers.slice(0, 1) }).headline).toBe('Sending');
  // Nothing waits for it.
  expect(judge({ due: 0 }, { covers }).headline).toBe('Idle');
  const pausedReason = '5 rejections in a row, the last: Not enough funds';
  const paused = judge({ pausedReason }, { covers: [{ ...covers[1], queued: '0', isEnough: true } as BalanceCover] });
  expect(paused).toMatchObject({ tone: 'bad', command: 'payouts gateway balance --account 7' });
  expect(paused.detail).toContain('The gateway has 58.1 USD.');
});

it('says of a ledger without any send that it may be that of another Redis', () => {
  const zeros = { ...NO_LEASE, workers: [], due: 0, sends: 0 };
  expect(judge(zeros)).toMatchObject({
    tone: 'bad',
    headline: 'No worker',
    detail: expect.stringContaining('check REDIS_URL'),
  });
  for (const known of [{ sends: 1 }, { due: 1 }, { held: 1 }])
    expect(judge({ ...zeros, ...known }).detail).not.toContain('REDIS_URL');
});

it('names each cause of held payouts with its number and its command', () => {
  const heldBy = [
    { rule: 'four-eyes', reason: 'approve', count: 3 },
    { rule: 'per-day', reason: 'wait', count: 2 },
    { rule: 'deny', reason: 'refuse', count: 1 },
  ];
  const { headline, detail, command } = judge({ due: 0, held: 8 }, { heldBy });
  expect([headline, command]).toEqual(['Waits for approval', 'payouts approvals --account 7']);
  for (const cause of [
    '3 need approval (rule four-eyes): `payouts approvals --account 7`',
    '2 wait until there is room or time (rule per-day): `payouts policy usage --account 7`',
    '1 are refused: cancel them, or change the policy (rule deny): `payouts list --account 7 --state held`',
    '2 for another cause, see `payouts list --account 7 --state held`',
  ])
    expect(detail).toContain(cause);
  expect(judge({ due: 0, held: 3 }, { heldBy: heldBy.slice(1) }).headline).toBe('Holds payouts');
  const held = { kind: 'policy', reason: 'approve', message: 'over 5', needs: { by: 'finance', persons: 2 } } as const;
  expect(judge({ due: 0, held: 3 }, { heldBy, firstHeld: { held } }).detail).toMatch(
    /The first, needs 2 more approvals by finance, because: over 5$/,
  );
});

it('names the standby that takes over, else the command that starts a worker', () => {
  const standby = { ...WORKER, name: 'host:2', role: 'standby' };
  const beside = (change: object): Headline => judge({ ...SILENT, workers: [WORKER, { ...standby, ...change }] });
  const taken = beside({});
  expect(taken.detail).toContain('host:2 stands by to take over');
  expect(taken.command).toBeUndefined();
  expect(beside({ silentMs: 9_000 }).command).toBe('payouts worker');
  expect(beside({ role: 'refused', reason: 'its journal was not adopted' })).toMatchObject({
    ...{ headline: 'The worker refuses to send', detail: 'host:2: its journal was not adopted' },
    ...{ command: 'payouts doctor --account 7', runbook: 'docs/runbooks/journal.md' },
  });
});

it('knows the life of a sender only from a heartbeat that rose while it was watched', () => {
  const watch = new SenderLifeTracker();
  watch.note(HOLDER, 0);
  expect(watch.life(400).kind).toBe('checking');
  watch.note({ ...HOLDER, heartbeat: 10 }, 400);
  expect(watch.life(900).kind).toBe('alive');
  watch.note({ ...HOLDER, heartbeat: 10 }, 800);
  expect(watch.life(5_100).kind).toBe('alive');
  expect(watch.life(5_300)).toMatchObject({ kind: 'silent', silentMs: 4_900 });
  // After a pause of the watch it is unknown again.
  watch.note({ ...HOLDER, heartbeat: 50 }, 60_000);
  expect(watch.life(60_100).kind).toBe('checking');
  watch.note({ ...HOLDER, owner: 'other:2:x', epoch: 3, heartbeat: 0 }, 60_400);
  expect(watch.life(60_500)).toMatchObject({ kind: 'alive', owner: 'other:2:x' });
  watch.note(null, 60_800);
  expect(watch.life(60_900).kind).toBe('none');
});

describe('money at risk', () => {
  useAccount();

  const observe = async (): Promise<Headline> => {
    const watch = new AccountPoller(account, systemClock);
    try {
      return accountHeadline(await watch.visit());
    } finally {
      watch.close();
    }
  };
  const sends = { settled: NO_SENDS, recent: NO_SENDS, open: NO_SENDS };

  it('is the headline while the balance fell unexplained, until an operator accepts it, and if a payout was paid late', async () => {
    const { connection, redis } = account;
    expect((await observe()).headline).toBe('Checking');
    const { clock, keys } = connection;
    const at = clock.wallNow();
    await redis.zadd(keys.late, at, 'p-late');
    expect(await observe()).toMatchObject({
      ...{ tone: 'bad', headline: 'Paid late', runbook: 'docs/runbooks/paid-late.md' },
      detail: expect.stringMatching(/^p-late is possibly paid twice: /) as unknown,
    });
    const drop = { amount: '3000000', since: at, at };
    const balance = { ...sends, paymentId: undefined, symbol: undefined, amount: '96900000', baseline: undefined };
    const found = { ...balance, decimalsSeen: 2, unexplained: '3000000', incomparable: undefined, isSuspected: false };
    const compared = { comparedAt: at, followedSince: at, followedTo: '0-0', fees: {}, rates: {} };
    await saveReconciliation(connection, { ...compared, balances: [{ ...found, reported: '3000000', drop }] });
    const fallen = await observe();
    expect(fallen).toMatchObject({ tone: 'bad', headline: 'Balance fell', runbook: 'docs/runbooks/balance-fell.md' });
    expect(fallen.detail).toMatch(
      /^By 3,000,000 USD more than the payouts explain, first noticed \d+ s ago: someone else may use the gateway's key\.$/,
    );
    expect(fallen.command).toBe(`payouts pause --account ${connection.platformId} --reason 'balance fell'`);
    await acceptDrops(connection, at, { by: 'ann', reason: 'moved to the cold wallet' });
    expect((await observe()).headline).toBe('Paid late');
  });

  it('is the headline once a payout is held that someone had altered', async () => {
    await account.enqueue('altered');
    const hold = { kind: 'signature', reason: 'fields', message: 'not as it was signed' } as const;
    await account.sender.holdPayout('altered', 0, { ...hold, isTampering: false });
    expect((await observe()).headline).toBe('Checking');
    await account.enqueue('altered-2');
    await account.sender.holdPayout('altered-2', 0, { ...hold, isTampering: true });
    const { platformId } = account.connection;
    expect(await observe()).toMatchObject({
      ...{ tone: 'bad', headline: 'Tampering', runbook: 'docs/runbooks/tampering.md' },
      detail: expect.stringMatching(/^altered-2 was held .* ago, because someone had altered it in Redis\./) as unknown,
      command: `payouts events --account ${platformId}`,
    });
    await account.redis.hset(account.connection.keys.ledger, 'tampering', 'no time');
    expect((await observe()).headline).toBe('Checking');
  });
});

const SENDER = 'payouts-1:4711';
let account: SampleAccount;

function useAccount() {
  beforeEach(async () => {
    account = await openSampleAccount();
  });
  afterEach(async () => account.close());
}

describe('how long a sender could have sent', () => {
  useAccount();
  let watch: AccountPoller;
  let beating: NodeJS.Timeout;

  beforeEach(async () => {
    await account.redis.hset(account.connection.keys.sender, 'owner', `${SENDER}:9f3a1c22`);
    await writeSampleWorker(account, SENDER, { role: 'sender' });
    beating = setInterval(() => void account.redis.hincrby(account.connection.keys.sender, 'beat', 1), 300);
    watch = new AccountPoller(account, systemClock);
  });

  afterEach(() => {
    watch.close();
    clearInterval(beating);
  });

  async function observe(what: string, holds: (ledger: LedgerObservation) => boolean): Promise<LedgerObservation> {
    let seen: LedgerObservation | undefined;
    await until(what, async () => {
      seen = (await watch.visit()).ledger;
      return seen !== undefined && holds(seen);
    });
    return seen as LedgerObservation;
  }

  it('does not count the time in which nothing was due', async () => {
    await observe('a second has passed', ({ watchedMs }) => watchedMs > 1_000);
    await account.enqueue('first');
    const { readyMs, watchedMs } = await observe('it is due', ({ due }) => due === 1);
    expect(readyMs).toBeLessThan(watchedMs - 500);
    await observe('it waits', (ledger) => ledger.readyMs > 500);
  });

  it('does not count a pause, or the wait after a takeover', async () => {
    await account.enqueue('first');
    await observe('it waits', ({ readyMs }) => readyMs > 500);
    await account.ledger.pause('ann', 'maintenance');
    expect((await observe('it is paused', (ledger) => ledger.pausedReason !== undefined)).readyMs).toBe(0);
    await account.ledger.resume('ann', 'done');
    await observe('it waits again', ({ readyMs }) => readyMs > 0);
    const holdOffUntil = Number((await account.redis.time())[0]) * 1_000 + 60_000;
    await writeSampleWorker(account, SENDER, { role: 'sender', holdOffUntil });
    await observe('it is held off', ({ readyMs }) => readyMs === 0);
  });
});

describe('what is reported of an account', () => {
  useAccount();
  let access: AccountAccess;
  let registry: Registry;

  beforeEach(() => {
    const { platformId } = account;
    access = openAccount({ platformId, redisUrl: testRedisUrl(), logger: silentLogger, readOnly: true });
    registry = new Registry();
    exportAccounts(registry, 'notify', () => [access], 1_000);
  });
  afterEach(async () => access.close());

  const scrape = async (name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> =>
    readMetric(await registry.metrics(), name, { platform_id: String(account.platformId), ...labels });

  async function publish(at = Date.now()) {
    const rule = { unit: 'amount', limit: '10', withinMs: 1_000, per: null, unknown: null } as const;
    const policy: PolicyReport = {
      ...{ hash: 'a'.repeat(64), at, ratesAt: at - 20_000, ratesMissingSince: null },
      rules: [
        { ...rule, rule: 'day', buckets: [{ bucket: '', spent: '9', wanted: '2', ratio: 0.9 }] },
        { ...rule, rule: 'wallet', per: 'address', buckets: [] },
      ],
      held: [
        { rule: 'cool-down', reason: 'wait', count: 3, since: at + 60_000 },
        { rule: 'four-eyes', reason: 'approve', count: 1, since: at - 60_000 },
      ],
      heldWithoutRule: [{ rule: '', reason: 'signature', count: 2, since: at - 5_000 }],
    };
    await writePolicyReport(account.connection, policy);
  }

  async function reportWorker(at: number) {
    const { redis, keys } = account.connection;
    await redis.hset(keys.sender, { owner: `${SENDER}:abc`, epoch: '1', beat: '5', token: 'x' });
    await writeSampleWorker(account, SENDER, { role: 'sender', at });
  }

  it('is its adoption, until it is resumed', async () => {
    await account.ledger.pause('ann', 'lunch');
    expect(await scrape('payouts_adopted')).toBe(0);
    const raised = { token: 'adoption', inFlightMs: 0 };
    const actor = { by: 'ann', reason: 'restored' };
    await adoptLedger(
      account.connection,
      { epoch: 0, sendCount: 0, acts: 0 },
      raised,
      { read: [], givenUp: [] },
      actor,
    );
    expect(await scrape('payouts_adopted')).toBe(1);
    await account.ledger.resume('ann', 'looked', '', 'adoption');
    expect(await scrape('payouts_paused')).toBe(1);
    expect(await scrape('payouts_adopted')).toBe(0);
  });

  it('is the state of its payouts', async () => {
    await account.enqueue('P-1');
    expect(await scrape('payouts_in_state', { state: 'queued' })).toBe(1);
    for (const name of ['payouts_paused', 'payouts_objections']) expect([name, await scrape(name)]).toEqual([name, 0]);
    expect(await registry.metrics()).toContain('payouts_redis_up 1\n');
    expect(await registry.metrics()).toContain('payouts_exporter_info{exporter="notify"} 1\n');
  });

  it('is what a policy holds, for how long too long, and nothing of one that is no more', async () => {
    await publish();
    const held = async (rule: string, kind: string) => scrape('payouts_held', { rule, kind });
    const overdue = async (rule: string, kind: string) => scrape('payouts_held_overdue_seconds', { rule, kind });
    expect(await scrape('payouts_policy_usage_ratio', { rule: 'day' })).toBe(0.9);
    expect(await scrape('payouts_policy_usage_ratio', { rule: 'wallet' })).toBe(0);
    expect([await held('cool-down', 'wait'), await overdue('cool-down', 'wait')]).toEqual([3, 0]);
    expect(await overdue('four-eyes', 'approve')).toBeGreaterThan(59);
    expect(await held('', 'signature')).toBe(2);
    expect(await scrape('payouts_rate_age_seconds')).toBeGreaterThan(19);
    await publish(Date.now() - 600_000);
    expect(await held('cool-down', 'wait')).toBe(3);
    await reportWorker(Date.now());
    expect(await held('cool-down', 'wait')).toBeUndefined();
  });

  it('is the last balance, unless a living sender cannot read it', async () => {
    const balance = [{ paymentId: undefined, symbol: 'BTC', amount: '5' }];
    const balanceAt = Date.now() - 3_600_000;
    await writeGatewayFacts(account.connection, { balance, balanceAt });
    await reportWorker(balanceAt + 60_000);
    expect(await scrape('payouts_balance', { currency: 'BTC' })).toBe(5);
    await reportWorker(Date.now());
    expect(await scrape('payouts_balance', { currency: 'BTC' })).toBeUndefined();
  });

  it('is the silence of the sender since its heartbeat rose', async () => {
    const { redis, keys } = account.connection;
    const age = async () => (await scrape('payouts_sender_heartbeat_age_seconds')) ?? NaN;
    await age();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await age()).toBeGreaterThan(0.04);
    await redis.hset(keys.sender, { owner: 'host:7:abc', epoch: '1', beat: '6', token: 'x' });
    expect(await age()).toBe(0);
    await redis.del(keys.sender);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await age()).toBeGreaterThan(0.01);
  });
});
