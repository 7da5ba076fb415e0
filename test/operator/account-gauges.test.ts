import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { silentLogger } from '../../src/base/logger.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { type PolicyReport, writePolicyReport } from '../../src/ledger/reads/policy-report.js';
import { exportAccounts } from '../../src/operator/account-gauges.js';
import { type AccountAccess, openAccount } from '../../src/queues/open-account.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { readMetric } from '../worker/support/watched-worker.js';

/** What a process beside the workers reports of an account, read from Redis at each scrape. */

const platformId = newPlatformId();
let account: AccountAccess;
let registry: Registry;

beforeEach(() => {
  account = openAccount({ platformId, redisUrl: testRedisUrl(), logger: silentLogger, readOnly: true });
  registry = new Registry();
  exportAccounts(registry, 'notify', () => [account], 1_000);
});

afterEach(async () => account.close());

async function scrape(): Promise<(name: string, labels?: Readonly<Record<string, string>>) => number | undefined> {
  const text = await registry.metrics();
  return (name, labels = {}) => readMetric(text, name, { platform_id: String(platformId), ...labels });
}

function report(changes: Partial<PolicyReport> = {}): PolicyReport {
  const rule = { unit: 'amount', limit: '10', withinMs: 1_000, per: null, unknown: null } as const;
  const now = Date.now();
  return {
    ...{ hash: 'a'.repeat(64), at: now, ratesAt: now - 20_000, ratesMissingSince: null },
    rules: [
      { ...rule, rule: 'day', buckets: [{ bucket: '', spent: '9', wanted: '2', ratio: 0.9 }] },
      { ...rule, rule: 'wallet', per: 'address', buckets: [] },
    ],
    held: [
      { rule: 'cool-down', reason: 'wait', count: 3, since: now + 60_000 },
      { rule: 'four-eyes', reason: 'approve', count: 1, since: now - 60_000 },
    ],
    heldWithoutRule: [{ rule: '', reason: 'signature', count: 2, since: now - 5_000 }],
    ...changes,
  };
}

it('is the state of its payouts', async () => {
  await account.ledger.enqueue([aPayout('P-1')]);
  const metric = await scrape();
  expect(metric('payouts_in_state', { state: 'queued' })).toBe(1);
  expect(metric('payouts_paused')).toBe(0);
  expect(metric('payouts_objections')).toBe(0);
  expect(await registry.metrics()).toContain('payouts_redis_up 1\n');
  expect(await registry.metrics()).toContain('payouts_exporter_info{exporter="notify"} 1\n');
});

it('is what the policy holds, by rule and for how long too long', async () => {
  await writePolicyReport(account.ledger.connection, report());
  const metric = await scrape();
  expect(metric('payouts_policy_usage_ratio', { rule: 'day' })).toBe(0.9);
  expect(metric('payouts_policy_usage_ratio', { rule: 'wallet' })).toBe(0);
  expect(metric('payouts_held', { rule: 'cool-down', kind: 'wait' })).toBe(3);
  expect(metric('payouts_held_overdue_seconds', { rule: 'cool-down', kind: 'wait' })).toBe(0);
  expect(metric('payouts_held_overdue_seconds', { rule: 'four-eyes', kind: 'approve' })).toBeGreaterThan(59);
  expect(metric('payouts_held', { rule: '', kind: 'signature' })).toBe(2);
  expect(metric('payouts_rate_age_seconds')).toBeGreaterThan(19);
});

async function reportWorker(at: number): Promise<void> {
  const { redis, keys } = account.ledger.connection;
  await redis.hset(keys.sender, { owner: 'host:7:abc', epoch: '1', beat: '5', token: 'x' });
  await redis.hset(keys.workers, 'host:7', JSON.stringify({ role: 'sender', at, startedAt: 0, version: '1' }));
}

it('is nothing of a policy that the sender has no more', async () => {
  await writePolicyReport(account.ledger.connection, report({ at: Date.now() - 600_000 }));
  expect((await scrape())('payouts_held', { rule: 'cool-down', kind: 'wait' })).toBe(3);
  await reportWorker(Date.now());
  expect((await scrape())('payouts_held', { rule: 'cool-down', kind: 'wait' })).toBeUndefined();
});

it('is the last balance, unless a living sender cannot read it', async () => {
  const balance = [{ paymentId: undefined, symbol: 'BTC', amount: '5' }];
  const balanceAt = Date.now() - 3_600_000;
  await writeGatewayFacts(account.ledger.connection, { balance, balanceAt });
  await reportWorker(balanceAt + 60_000);
  expect((await scrape())('payouts_balance', { currency: 'BTC' })).toBe(5);
  await reportWorker(Date.now());
  expect((await scrape())('payouts_balance', { currency: 'BTC' })).toBeUndefined();
});

it('is the silence of the sender since its heartbeat rose', async () => {
  const { redis, keys } = account.ledger.connection;
  const age = async (): Promise<number> => (await scrape())('payouts_sender_heartbeat_age_seconds') ?? Number.NaN;
  await age();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await age()).toBeGreaterThan(0.04);
  await redis.hset(keys.sender, { owner: 'host:7:abc', epoch: '1', beat: '6', token: 'x' });
  expect(await age()).toBe(0);
  await redis.del(keys.sender);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await age()).toBeGreaterThan(0.01);
});
