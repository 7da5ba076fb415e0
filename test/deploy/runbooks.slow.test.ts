import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { createGatewayClient } from '../../src/gateway/gateway-client.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { until } from '../support/until.js';
import { RunbookHost } from './support/runbook-host.js';
import { readRunbooks } from './support/runbooks.js';

/** Each runbook of docs/runbooks, line by line: the commands are taken from the page itself. */

const ACCOUNT = 4242;
const OTHER_ACCOUNT = 4243;
const SECRET_KEY = 'k-old-0123456789';
const LATER = { paymentId: 1, amount: '1', addressTo: 'wallet-later', notBefore: '2099-01-01T00:00:00Z' };
const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

const runbooks = readRunbooks();
const tried = new Set<string>();

let accounts: { platformId: number; secretKey: string }[];
let sandbox: Sandbox;
let host: RunbookHost;
let producer: PayoutProducer;

beforeEach(async () => {
  accounts = [ACCOUNT, OTHER_ACCOUNT].map((platformId) => ({ platformId, secretKey: SECRET_KEY }));
  sandbox = await startSandbox({ accounts, settleAfterMs: 200 });
  host = await RunbookHost.open({ gatewayUrl: sandbox.url, secretKey: SECRET_KEY });
  producer = new PayoutProducer({ redisUrl: host.redisUrl, platformId: ACCOUNT });
});

afterEach(async () => {
  await producer.close();
  await host.close();
  await sandbox.close();
});

/** The same gateway, changed; it has forgotten its payments. */
async function restartSandbox(changes: Partial<Parameters<typeof startSandbox>[0]>): Promise<void> {
  await sandbox.close();
  const { port } = new URL(sandbox.url);
  sandbox = await startSandbox({ accounts, settleAfterMs: 200, port: Number(port), ...changes });
}

/**
 * Runs the blocks of a page of docs/runbooks, in their order.
 * @param before - what the page's words say has to happen before a block, by its number from 0
 * @returns what each block printed
 */
async function follow(
  page: string,
  before: Readonly<Record<number, () => Promise<void> | void>> = {},
  on = host,
): Promise<string[]> {
  const blocks = runbooks.get(page);
  if (blocks === undefined) throw new Error(`docs/runbooks/${page}.md has no block to run`);
  tried.add(page);
  const outputs: string[] = [];
  for (const [index, block] of blocks.entries()) {
    await before[index]?.();
    const { code, output } = await on.shell(block);
    if (code !== 0) throw new Error(`This block ended with ${String(code)}:\n${block}\n${output}`);
    outputs.push(output);
  }
  return outputs;
}

async function enqueue(count: number, prefix: string, to = producer): Promise<void> {
  await to.enqueueMany(
    Array.from({ length: count }, (_, index) => ({
      payoutId: `${prefix}-${index + 1}`,
      paymentId: 1,
      amount: '0.01',
      addressTo: `wallet-${prefix}${index + 1}xxxxxxxxxxxxxxxxxxxxxxxxxx`,
    })),
  );
}

async function untilCompleted(count: number, of = producer): Promise<void> {
  let last: unknown;
  await until(
    () => `${count} payouts are completed, but: ${JSON.stringify(last)}`,
    async () => {
      const stats = await of.stats().catch(() => undefined);
      last = stats;
      return stats?.completed === count;
    },
  );
}

function expectPromisesKept(): void {
  const { blocked, duplicatePayments, smallestGapMs } = sandbox.stats(ACCOUNT);
  expect({ blocked, duplicatePayments }).toEqual({ blocked: false, duplicatePayments: [] });
  if (smallestGapMs !== null) expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
}

async function startWorker(): Promise<void> {
  await host.shell('systemctl start payouts-worker');
  await enqueue(1, 'first');
  await untilCompleted(1);
}

it('change the gateway’s secret key', async () => {
  await startWorker();
  await follow('gateway-key', {
    1: async () => {
      await enqueue(2, 'waits');
      await restartSandbox({ accounts: accounts.map((each) => ({ ...each, secretKey: 'k-new-0123456789' })) });
      await writeFile(host.path('new-key'), 'k-new-0123456789', { mode: 0o600 });
    },
  });
  await untilCompleted(3);
  expectPromisesKept();
});

it('move to another Redis', async () => {
  await startWorker();
  await host.startNewRedis();
  await enqueue(3, 'moves');
  await follow('move-redis');
  const moved = new PayoutProducer({ redisUrl: host.newRedisUrl, platformId: ACCOUNT });
  try {
    await untilCompleted(4, moved);
  } finally {
    await moved.close();
  }
  expectPromisesKept();
});

it('a host is lost', async () => {
  await startWorker();
  const other = await RunbookHost.open({ gatewayUrl: sandbox.url, secretKey: SECRET_KEY, redisPort: host.redisPort });
  try {
    await enqueue(3, 'survives');
    process.kill(await host.pidOf('payouts-worker'), 'SIGKILL');
    await rm(host.path('var/lib/payouts'), { recursive: true });
    await follow('host-lost', {}, other);
    await until('all is settled', async () => {
      const { completed, unknown } = await producer.stats();
      return completed + unknown === 4;
    });
    expectPromisesKept();
  } finally {
    await other.close();
  }
});

it('back up and restore Redis', async () => {
  await startWorker();
  await producer.enqueue({ ...LATER, payoutId: 'wrong' });
  await follow('backup');
  await enqueue(2, 'forgotten');
  await untilCompleted(3);
  const cancelled = 'payouts cancel wrong --reason "wrong file"';
  expect(await host.shell(cancelled)).toMatchObject({ code: 0 });
  const stopped = async (): Promise<void> => {
    await until('the worker objects', async () => {
      const { output } = await host.shell('payouts stats || true');
      return output.includes('adopt-ledger');
    });
  };
  await follow('restore-redis', {
    2: stopped,
    3: async () => {
      // The copy does not know of the cancellation.
      expect(await producer.stats()).toMatchObject({ paused: true, queued: 1 });
      expect(await host.shell(cancelled)).toMatchObject({ code: 0 });
    },
  });
  // What the journal knows is restored with its txhash, and followed to its end.
  await untilCompleted(3);
  await enqueue(2, 'forgotten');
  await enqueue(1, 'after');
  await untilCompleted(4);
  expect(sandbox.stats(ACCOUNT).arrivals).toBe(4);
  expectPromisesKept();
});

it('add and remove an account', async () => {
  const file = host.path('etc/payouts/accounts.json');
  for (const copy of [`etc/payouts/${ACCOUNT}.key`, 'new-key']) {
    await cp(host.path('etc/payouts/secrets/gateway-secret-key'), host.path(copy));
  }
  const entry = (platformId: number): object => ({
    ...{ platformId, baseUrl: sandbox.url, secretKeyFile: `./${platformId}.key` },
  });
  await writeFile(file, JSON.stringify([entry(ACCOUNT)]));
  await host.writeSettings(`PAYOUT_ACCOUNTS_FILE=${file}\n`);
  await startWorker();
  const other = new PayoutProducer({ redisUrl: host.redisUrl, platformId: OTHER_ACCOUNT });
  try {
    const outputs = await follow('accounts', {
      0: async () => writeFile(file, JSON.stringify([entry(ACCOUNT), entry(OTHER_ACCOUNT)])),
      1: async () => {
        await enqueue(1, 'other', other);
        await untilCompleted(1, other);
        await other.enqueue({ ...LATER, payoutId: 'left' });
      },
      2: async () => writeFile(file, JSON.stringify([entry(ACCOUNT)])),
    });
    expect(outputs[1]).toMatch(/paused/);
    await enqueue(1, 'last');
    await untilCompleted(2);
    expect(await other.stats()).toMatchObject({ completed: 1, queued: 0, cancelled: 1, paused: true });
  } finally {
    await other.close();
  }
});

it('upgrade and go back', async () => {
  await startWorker();
  const [output = ''] = await follow('upgrade');
  expect(output.match(/^\d+\.\d+\.\d+/gm)).toHaveLength(2);
  await enqueue(2, 'after');
  await untilCompleted(3);
  expectPromisesKept();
});

it('a payout is failed', async () => {
  await startWorker();
  await restartSandbox({ failShare: 1 });
  await producer.enqueue({ payoutId: 'invoice-77', paymentId: 6, amount: '12.5', addressTo: WALLET });
  const failed = await producer.waitFor('invoice-77', { timeoutMs: 30_000 });
  expect(failed.state).toBe('failed');
  host.says('TXHASH', failed.txhash ?? '');
  const [first = ''] = await follow('failed');
  expect(first).toContain('invoice-77');
  expect((await producer.get('invoice-77-again'))?.reference).toBe('invoice-77');
});

it('rejections paused the account', async () => {
  await startWorker();
  sandbox.addFaults([{ kind: 'reject', times: 5, message: 'Not enough funds' }]);
  await enqueue(7, 'wave');
  await until('it is paused', async () => (await producer.stats()).paused);
  const [shown = ''] = await follow('rejected');
  expect(shown).toContain('Not enough funds');
  await untilCompleted(8);
  expectPromisesKept();
});

it('payouts are unknown', async () => {
  await host.shell('echo MAX_UNKNOWNS_IN_A_ROW=10 >> /etc/payouts/payouts.env');
  await startWorker();
  sandbox.addFaults([
    { kind: 'html-502', times: 1 },
    { kind: 'drop-before', times: 3 },
  ]);
  await enqueue(4, 'open');
  await until('they are unknown', async () => (await producer.stats()).unknown === 4);
  const paid = sandbox.payments(ACCOUNT).at(-1);
  await follow('unknown', {
    1: async () => {
      const rows = (await readFile(host.path('unknown.csv'), 'utf8')).split('\n').slice(1);
      const ids = rows.map((row) => row.split(',')[0] ?? '').filter((id) => id !== '' && id !== 'open-1');
      await writeFile(host.path('paid.csv'), `payout_id,txhash\nopen-1,${paid?.txhash ?? ''}\n`);
      await writeFile(host.path('unpaid.csv'), `payout_id\n${ids.join('\n')}\n`);
      // The guard and IN_FLIGHT_MAX_MS.
      await sleep(3_500);
    },
  });
  await untilCompleted(5);
  expectPromisesKept();
});

it('a wrong batch was imported', async () => {
  const batch = '2030-01-salaries';
  await producer.enqueueMany([1, 2, 3].map((n) => ({ ...LATER, payoutId: `wrong-${n}`, batch })));
  const [counted = ''] = await follow('wrong-batch');
  expect(counted).toContain('3 payouts');
  expect(await producer.stats()).toMatchObject({ queued: 0, cancelled: 3 });
  expect(await readFile(host.path('what-was-sent.csv'), 'utf8')).toContain('wrong-3');
});

it('the balance is low', async () => {
  await startWorker();
  const [shown = ''] = await follow('balance-low', { 1: async () => enqueue(2, 'funded') });
  expect(shown).toMatch(/USD|BTC|\d/);
  await untilCompleted(3);
});

it('the balance fell unexplained', async () => {
  await host.shell('echo BALANCE_EVERY_MS=1000 >> /etc/payouts/payouts.env');
  await startWorker();
  const reconcile = async (): Promise<string> => (await host.shell('payouts reconcile')).output;
  await until('the balance is judged', async () => /unexplained +0$/m.test(await reconcile()));
  const thief = createGatewayClient({
    ...{ baseUrl: sandbox.url, platformId: ACCOUNT, secretKey: SECRET_KEY, logger: silentLogger, clock: systemClock },
  });
  await thief.withdraw({ paymentId: 1, amount: '100000', addressTo: 'wallet-thiefxxxxxxxxxxxxxxxxxxxxxx' });
  thief.close();
  await until('it is reported', async () => (await reconcile()).includes('REPORTED'));
  const [shown = '', explained = ''] = await follow('balance-fell');
  expect(shown).toContain('missing, since');
  expect(explained).not.toContain('REPORTED');
});

it('no page with a block marked sh was left out', () => {
  expect([...tried].sort()).toEqual([...runbooks.keys()].sort());
});
