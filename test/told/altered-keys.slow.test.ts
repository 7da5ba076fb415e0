import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/logger.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { saveReconciliation } from '../../src/ledger/reads/reconciliation.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';
import { readEvents } from '../../src/producer/events/payout-events.js';
import { AccountNotifier } from '../../src/notifications/account-notifier.js';
import { startHealthServer } from '../../src/worker/monitoring/health-server.js';
import { RecentWork } from '../../src/worker/monitoring/recent-work.js';
import { createWorkerMetrics } from '../../src/worker/monitoring/worker-metrics.js';
import { runInProcess } from '../cli/support/in-process.js';
import { openDashboard, type RunningDashboard } from '../dashboard/support/running-dashboard.js';
import {
  fillAccount,
  openSampleAccount,
  type SampleAccount,
  signSample,
  writeSampleBatches,
  writeSampleWorker,
} from '../dashboard/support/sample-account.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { startReceiver } from '../notifications/support/receiver.js';
import { until } from '../support/until.js';
import { readMetric } from '../worker/support/watched-worker.js';

/**
 * Someone who can write to Redis alters one key after the other, each field and the type. Every page, command, metric
 * and stream goes on: what cannot be read is said, and nothing beside it is hidden.
 */

let altered: SampleAccount;
let healthy: SampleAccount;
let dashboard: RunningDashboard;
let health: Awaited<ReturnType<typeof startHealthServer>>;
let signed: Awaited<ReturnType<typeof signSample>>;
const closed: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  altered = await openSampleAccount();
  healthy = await openSampleAccount();
  closed.push(
    () => altered.close(),
    () => healthy.close(),
  );
  for (const account of [altered, healthy]) {
    await fillAccount(account);
    const signs = await signSample(account, systemClock);
    closed.push(signs.close);
    if (account === altered) signed = signs;
    await writeSampleWorker(account, 'worker-a:4711', {});
    await writeSampleBatches(account, ['september']);
    const { connection, redis } = account;
    const balance = [{ paymentId: 6, symbol: undefined, amount: '5' }];
    const currencies = [{ paymentId: 6, name: 'USDT', usdRate: '1' }];
    await writeGatewayFacts(connection, { balance, balanceAt: 1 }, { currencies, currenciesAt: 1 });
    await writeGatewayFacts(connection, { failure: 'no response', failureAt: 1 });
    await saveReconciliation(connection, {
      ...{ comparedAt: 1, followedSince: 1, followedTo: '0-0', fees: {}, rates: {} },
      balances: [],
    });
    // Without a lease no page waits for a heartbeat.
    await redis.hset(connection.keys.sender, 'released', '1');
  }
  const platformIds = [altered.platformId, healthy.platformId];
  dashboard = await openDashboard(altered, { platformId: platformIds });
  closed.unshift(() => dashboard.close());
  const metrics = createWorkerMetrics({ version: '1.2.3', registry: new Registry() });
  const accounts = [altered, healthy].map(({ platformId, ledger, queues, clock }) => ({
    ...({
      platformId,
      redis: { mayForget: false },
      missingReplicas: [],
      ledger,
      queues,
      part: 'send',
      status: { role: 'standby' },
    } as const),
    ...{
      keyring: undefined,
      policy: undefined,
      journalHead: undefined,
      work: new RecentWork(clock, metrics.observe(platformId)),
    },
  }));
  health = await startHealthServer({ host: '127.0.0.1', port: 0, metrics, accounts: () => accounts });
  closed.unshift(() => health.close());
});

afterAll(async () => {
  for (const close of closed) await close();
});

const pagesOf = (account: SampleAccount): string[] => {
  const base = `/accounts/${account.platformId}`;
  const lists = PAYOUT_STATES.map((state) => `/payouts?state=${state}`);
  return [
    ...['/overview', '/overview?range=day', '/diagnostics', '/batches', '/batch?name=september', '/activity'],
    ...[...lists, '/payouts?state=&amount=12.5', '/payouts.csv?state=queued', '/payouts.csv?state=&amount=12.5'],
    ...['/payouts?q=order', '/payouts/order:2047', '/held', '/audit', '/policy'],
    ...['/board/api/queues'],
  ].map((path) => base + path);
};

const COMMANDS: readonly (readonly string[])[] = [
  ['status'],
  ['stats'],
  ['stats', '--json'],
  ...PAYOUT_STATES.map((state) => ['list', '--state', state]),
  ['list', '--batch', 'september', '--json'],
  ['list', '--amount', '12.5', '--csv'],
  ['get', 'order:2047'],
  ['events', '--since', '1970-01-01', '--json'],
  ['activity'],
  ['approvals'],
  ['reconcile'],
  ['policy', 'usage'],
];

/** Without these nothing can be sent either. */
const NEEDED_TO_SEND = ['ledger', 'events'] as const;

interface Decision {
  readonly args: readonly string[];
  readonly codes: readonly number[];
}

/** What stops a payout goes on, too, beside what is altered. `order:2047` is not signed: nobody can approve it. */
function decisionsBeside(key: string): readonly Decision[] {
  const { keys } = altered.connection;
  const codes = NEEDED_TO_SEND.some((name) => key === keys[name]) ? [0, 5] : [0];
  const how = ['--key', signed.keyFiles.bob, '--yes', '--reason', 'ticket 9'];
  const ofPayout = (command: string, payoutId: string, ...args: readonly string[]): Decision => {
    const itsOwn = [
      keys.payout(payoutId),
      ...(['queued', 'held', 'cancelled'] as const).map((state) => keys.state(state)),
    ];
    const isAltered = itsOwn.includes(key);
    return { args: [command, payoutId, ...args], codes: isAltered ? [0, 1, 3, 4, 5] : codes };
  };
  return [
    ofPayout('approve', 'signed:large', ...how),
    ofPayout('reject', 'signed:waits', ...how),
    ofPayout('reject', 'order:2047', ...how),
    ofPayout('cancel', 'order:2050', '--reason', 'ticket 9'),
    { args: ['pause', '--reason', 'ticket 9'], codes },
    { args: ['approve', 'order:2047', ...how], codes: [1, 3, 4, 5] },
  ];
}

/** @returns what went wrong */
async function look(key = ''): Promise<string[]> {
  const faults: string[] = [];
  const texts = await Promise.all(
    ['/accounts', ...pagesOf(altered), `/accounts/${healthy.platformId}/overview`, '/metrics'].map(async (path) => {
      const response = await dashboard.ask(path);
      const text = await response.text();
      if (response.status >= 500 || /Internal error/.test(text)) faults.push(`${path}: ${response.status}`);
      return [path, text] as const;
    }),
  );
  const [[, overview], exported] = [texts[0] ?? ['', ''], texts.at(-1)?.[1] ?? ''];
  for (const { platformId } of [altered, healthy])
    if (!overview.includes(`Account ${platformId}`)) faults.push(`/accounts lacks ${platformId}`);
  const scraped = await (await fetch(`${health.url}/metrics`)).text();
  for (const [name, text] of Object.entries({ exported, scraped })) {
    if (readMetric(text, 'payouts_redis_up') !== 1) faults.push(`${name}: Redis is down`);
    for (const { platformId } of [altered, healthy]) {
      const labels = { platform_id: String(platformId), state: 'queued' };
      if (readMetric(text, 'payouts_in_state', labels) === undefined) faults.push(`${name} lacks ${platformId}`);
      const age = readMetric(text, 'payouts_oldest_age_seconds', labels);
      if (!(age !== undefined && age >= 0)) faults.push(`${name}: the oldest of ${platformId} waits ${age}`);
    }
  }
  const ready = await fetch(`${health.url}/readyz`);
  const { accounts = [] } = (await ready.json()) as { accounts?: readonly object[] };
  if (ready.status >= 500 && ready.status !== 503) faults.push(`/readyz: ${ready.status}`);
  if (accounts.length !== 2) faults.push('/readyz lacks an account');
  const keyring = { PAYOUT_KEYS_FILE: signed.options.keysFile };
  const env = { GATEWAY_PLATFORM_ID: String(altered.platformId), ...keyring };
  const before = await altered.dump();
  const reading = COMMANDS.map((args): Decision => ({ args, codes: [0, 1, 3, 5] }));
  for (const { args, codes } of [...reading, ...decisionsBeside(key)]) {
    const { code, stderr } = await runInProcess(args, env);
    if (/internal error/.test(stderr) || !codes.includes(code ?? -1))
      faults.push(`payouts ${args.join(' ')}: ${code} ${stderr.slice(-300)}`);
  }
  // A decision changes what the next look is to find.
  for (const [key, content] of Object.entries(before)) {
    await altered.redis.restore(key, 0, Buffer.from(content, 'hex'), 'REPLACE');
  }
  return faults;
}

/** Alters a key, looks, and puts the key back. */
async function lookAt(key: string, alter: () => Promise<unknown>): Promise<readonly [string[], string]> {
  const before = await altered.redis.dumpBuffer(key);
  await alter();
  try {
    const metrics = await (await fetch(`${health.url}/metrics`)).text();
    return [await look(key), metrics];
  } finally {
    await altered.redis.unlink(key);
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- absent keys have no dump
    if (before !== null) await altered.redis.restore(key, 0, before);
  }
}

const unreadableIn = (metrics: string) =>
  readMetric(metrics, 'payouts_unreadable_keys', { platform_id: String(altered.platformId) });

it('reads everything before anything is altered', async () => {
  expect(await look()).toEqual([]);
  const text = await (await fetch(`${health.url}/metrics`)).text();
  expect(unreadableIn(text)).toBe(0);
});

const FIXED = [
  ...['ledger', 'sender', 'outbox', 'events', 'activity', 'journals', 'objections', 'late', 'spent', 'recheck'],
  ...['unkept', 'unreceipted', 'statistics', 'batches', 'gateway', 'policy', 'workers'],
] as const;

it.each(FIXED)('the key %s of another type hides nothing else, and is counted', async (name) => {
  const key = altered.connection.keys[name];
  const alter = async () => {
    await altered.redis.unlink(key);
    return name === 'policy' ? altered.redis.rpush(key, 'x') : altered.redis.set(key, 'x');
  };
  const [faults, metrics] = await lookAt(key, alter);
  expect(faults).toEqual([]);
  expect(unreadableIn(metrics)).toBe(1);
});

it.each(PAYOUT_STATES)('the index of %s of another type hides nothing else, and is counted', async (state) => {
  const { keys } = altered.connection;
  const key = keys.state(state);
  const [faults, metrics] = await lookAt(key, async () => altered.redis.set(key, 'x'));
  expect(faults).toEqual([]);
  expect(unreadableIn(metrics)).toBe(1);
});

it('a batch of another type hides nothing else', async () => {
  const key = altered.connection.keys.batch('september');
  const [faults] = await lookAt(key, async () => altered.redis.set(key, 'x'));
  expect(faults).toEqual([]);
});

it('a payout of another type is a row that says so', async () => {
  const key = altered.connection.keys.payout('order:2047');
  const [faults] = await lookAt(key, async () => {
    await altered.redis.set(key, 'x');
    expect(await dashboard.readText(`/accounts/${altered.platformId}/payouts?state=queued`)).toMatch(
      /order:2050 .* order:2047 .*cannot be read/,
    );
    const { stdout } = await runInProcess(['list', '--state', 'queued', '--json'], {
      GATEWAY_PLATFORM_ID: String(altered.platformId),
    });
    const rows = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { payoutId: string; unreadable?: string });
    expect(rows.map(({ payoutId }) => payoutId).sort()).toEqual(['order:2046', 'order:2047', 'order:2050']);
    expect(rows.find(({ payoutId }) => payoutId === 'order:2047')?.unreadable).toMatch(/cannot be read/);
  });
  expect(faults).toEqual([]);
});

const FIELDS: readonly (readonly [key: string, field: string, values: readonly string[]])[] = [
  ...['n', 'state', 'h0', 'paymentId', 'amount', 'addressTo', 'metadata', 'priority', 'decisions', 'attempt'].map(
    (field) => ['payout:order:2047', field, ['x', '']] as const,
  ),
  ['payout:order:2047', 'pending', ['x']],
  ['payout:order:2047', 'queuedSince', ['x']],
  ...['state', 'key', 'sig', 'iat', 'aud', 'decisions', 'held', 'approval:ann', 'approval:x'].map(
    (field) => ['payout:signed:large', field, ['x', '', '{}']] as const,
  ),
  ['payout:order:2051', 'held', ['{', 'null', '{"kind":7}']],
  ['payout:order:2043', 'h2', ['x']],
  ...['pausedReason', 'pausedAt', 'morePauses', 'acts', 'audience', 'rejectionsInARow'].map(
    (field) => ['ledger', field, ['x']] as const,
  ),
  ...['epoch', 'beat', 'sends', 'inFlightMs', 'unanswered', 'last'].map((field) => ['sender', field, ['x']] as const),
  ...['zz', 'currencies', 'balance', 'failure', 'reconciliation', 'acceptedDrops'].map(
    (field) =>
      [
        'gateway',
        field,
        [
          ...['x', 'null', '7', '[]', '{"currencies":[{"paymentId":"x"}]}', '{"balance":[{"amount":"x"}]}'],
          ...['{"balance":[{"amount":"5"}],"balanceAt":9e99}', '{"failure":7}', '{"currencies":[{"paymentId":6}]}'],
          ...['{"reconciliation":7}', '{"reconciliation":{"balances":[7]}}', '{"acceptedDrops":7}'],
        ],
      ] as const,
  ),
  ...['position', 'sums', 'today', 'lastSendAt', 'pace', 'hour:1'].map(
    (field) => ['statistics', field, ['x', 'null', '7', '{"queued":7}', '9e99']] as const,
  ),
  ['batches', '', ['x']],
  ['batches', 'september', ['x', '7', '{"queued":7}']],
  ['batches', 'nowhere', ['x']],
  ['workers', 'worker-a:4711', ['x', 'null', '{"role":"sender","at":9e99,"startedAt":9e99}']],
  ['journals', 'abcdefabcdef', ['x', '{"at":9e99}']],
  ['objections', 'abcdefabcdef', ['x', '{"at":9e99}']],
];

it.each(FIELDS)('of %s, the field "%s" with what nobody can read hides nothing else', async (name, field, values) => {
  const key = `${altered.connection.keys.prefix}:${name}`;
  for (const value of values) {
    const [faults] = await lookAt(key, async () => altered.redis.hset(key, field, value));
    expect([value, faults]).toEqual([value, []]);
  }
});

it.each([
  ['{', 'text'],
  ['{"at":9e99,"ratesAt":9e99}', 'times beyond all dates'],
])('a policy report that is %s (%s) hides nothing else', async (text) => {
  const key = altered.connection.keys.policy;
  expect((await lookAt(key, async () => altered.redis.set(key, text)))[0]).toEqual([]);
});

it.each([
  ['outbox', 'what no version writes'],
  ['late', 'nobody'],
  ['unkept', 'nobody'],
  ['unreceipted', 'nobody'],
  ['state:sending', 'nobody'],
  ['state:queued', 'nobody'],
  ['state:in_progress', 'nobody'],
])('in %s, an entry without its record hides nothing else', async (name, member) => {
  const key = `${altered.connection.keys.prefix}:${name}`;
  expect((await lookAt(key, async () => altered.redis.zadd(key, -1, member)))[0]).toEqual([]);
});

const EVENTS = [
  ['at', 'soon'],
  ['x', 'y'],
  ['type', 'state', 'payoutId', 'p', 'to', 'nowhere', 'at', '9e99', 'by', 'ann'],
  ['type', 'paused', 'at', 'x', 'by', 'ann'],
  ['type', 'state', 'payoutId', 'order:2047', 'to', 'sending', 'at', '9e99'],
];

it.each(EVENTS.map((fields) => [fields]))('the event %j hides none behind it', async (fields) => {
  const { connection, redis, ledger } = altered;
  for (const key of [connection.keys.events, connection.keys.activity]) {
    const [faults] = await lookAt(key, async () => redis.xadd(key, '*', ...fields));
    expect(faults).toEqual([]);
  }
  const before = await redis.dumpBuffer(connection.keys.events);
  await redis.xadd(connection.keys.events, '*', ...fields);
  await ledger.pause('ann', 'to see the event behind it');
  const last = (await readEvents(connection, { sinceMs: 0 }, 10_000)).at(-1);
  expect(last).toMatchObject({ type: 'paused', by: 'ann' });
  await ledger.resume('ann', 'seen');
  await redis.restore(connection.keys.events, 0, before, 'REPLACE');
});

it('notify posts what comes behind a malformed event, though the gateway and the payout cannot be read', async () => {
  const { connection, redis, ledger } = altered;
  const receiver = await startReceiver();
  const stop = new AbortController();
  const notifier = new AccountNotifier(
    ledger,
    {
      receiver: { url: receiver.url, format: 'json', secret: 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=' },
      events: 'paused,late_payment,tampering',
      timeoutMs: 5_000,
      observe: () => ({ worked: () => undefined, delivered: () => undefined, failed: () => undefined }),
      logger: silentLogger,
    },
    stop.signal,
  );
  const running = notifier.run();
  await until('the group', async () => ((await redis.xinfo('GROUPS', connection.keys.events)) as unknown[]).length > 0);
  const gateway = await redis.dumpBuffer(connection.keys.gateway);
  await redis.set(connection.keys.gateway, 'x');
  for (const fields of EVENTS) await redis.xadd(connection.keys.events, '*', ...fields);
  await ledger.pause('ann', 'to see it posted');
  await until('the notification', () => receiver.received.some(({ body }) => body.includes('to see it posted')));
  await altered.enqueue('forged');
  await altered.sender.holdPayout('forged', 0, { ...HOLD, isTampering: true });
  await until('the alarm', () => receiver.received.some(({ body }) => body.includes('"tampering"')), 10_000);
  stop.abort();
  await running;
  await ledger.resume('ann', 'seen');
  await redis.restore(connection.keys.gateway, 0, gateway, 'REPLACE');
  await receiver.close();
}, 30_000);
