import { readdirSync, readFileSync } from 'node:fs';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import { createGatewayClient } from '../../src/gateway/gateway-client.js';
import { silentLogger } from '../../src/base/logger.js';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { until } from '../support/until.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { cents, expectPace, numbered } from '../worker/support/payout-world.js';
import { ROOT } from './read-compose.js';
import { openRunbookHost, type RunbookHost } from './runbook-host.js';

/** Runbooks of docs/runbooks, line by line: the commands are taken from the page itself. */

const ACCOUNT = 4242;
const OTHER_ACCOUNT = 4243;
const SECRET_KEY = 'k-old-0123456789';
const LATER = { paymentId: 1, amount: '1', addressTo: 'wallet-later', notBefore: '2099-01-01T00:00:00Z' };
const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

const FOLDER = join(ROOT, 'docs/runbooks');
/** The blocks marked `sh` of each page. */
const runbooks = new Map(
  readdirSync(FOLDER).flatMap((file): [string, string[]][] => {
    const text = readFileSync(join(FOLDER, file), 'utf8');
    const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
    return blocks.length === 0 ? [] : [[file.replace(/\.md$/, ''), blocks]];
  }),
);
/** What test/drills follows. */
const DRILLED = ['balance-low', 'host-lost', 'rejected', 'unknown', 'wrong-batch'];
const tried = new Set(DRILLED);

const accounts = [ACCOUNT, OTHER_ACCOUNT].map((platformId) => ({ platformId, secretKey: SECRET_KEY }));
let sandbox: Sandbox;
let host: RunbookHost;
let producer: PayoutProducer;

beforeEach(async () => {
  sandbox = await startSandbox({ accounts, settleAfterMs: 200 });
  host = closeAfterTest(await openRunbookHost(sandbox.url, SECRET_KEY));
  producer = openProducer();
});
afterEach(async () => sandbox.close());

const openProducer = (redisUrl = host.redisUrl, platformId = ACCOUNT): PayoutProducer =>
  closeAfterTest(new PayoutProducer({ redisUrl, platformId }));

/** The same gateway, changed; it has forgotten its payments. */
async function restartSandbox(changes: Partial<Parameters<typeof startSandbox>[0]>): Promise<void> {
  await sandbox.close();
  const port = Number(new URL(sandbox.url).port);
  sandbox = await startSandbox({ accounts, settleAfterMs: 200, port, ...changes });
}

/**
 * Runs the blocks of a page, in their order.
 * @param before - what the page's words say has to happen before a block, by its number from 0
 * @returns what each block printed
 */
async function follow(page: string, before: Readonly<Record<number, () => unknown>> = {}): Promise<string[]> {
  tried.add(page);
  const outputs: string[] = [];
  for (const [index, block] of (runbooks.get(page) ?? []).entries()) {
    await before[index]?.();
    const { code, output } = await host.shell(block);
    if (code !== 0) throw new Error(`This block ended with ${String(code)}:\n${block}\n${output}`);
    outputs.push(output);
  }
  return outputs;
}

const enqueue = async (count: number, prefix: string, to = producer): Promise<unknown> =>
  to.enqueueMany(cents(numbered(count, prefix)));

async function untilCompleted(count: number, of = producer): Promise<void> {
  await until(
    `${count} payouts are completed`,
    async () => (await of.stats().catch(() => undefined))?.completed === count,
  );
}

async function startWorker(): Promise<void> {
  await host.shell('systemctl start payouts-worker');
  await enqueue(1, 'first');
  await untilCompleted(1);
}

it('change the gateway’s secret key', async () => {
  await startWorker();
  const secretKey = 'k-new-0123456789';
  await follow('gateway-key', {
    1: async () => {
      await enqueue(2, 'waits');
      await restartSandbox({ accounts: [{ platformId: ACCOUNT, secretKey }] });
      await writeFile(host.path('new-key'), secretKey, { mode: 0o600 });
    },
  });
  await untilCompleted(3);
  expectPace(sandbox, ACCOUNT);
});

it('move to another Redis', async () => {
  await startWorker();
  await host.startNewRedis();
  await enqueue(3, 'moves');
  await follow('move-redis');
  await untilCompleted(4, openProducer(host.newRedisUrl));
  expectPace(sandbox, ACCOUNT);
});

it('back up and restore Redis', async () => {
  await startWorker();
  await producer.enqueue({ ...LATER, payoutId: 'wrong' });
  await follow('backup');
  await enqueue(2, 'forgotten');
  await untilCompleted(3);
  const cancel = async (): Promise<void> =>
    expect(await host.shell('payouts cancel wrong --reason "wrong file"')).toMatchObject({ code: 0 });
  await cancel();
  await follow('restore-redis', {
    2: async () =>
      until('the worker objects', async () =>
        (await host.shell('payouts stats || true')).output.includes('adopt-ledger'),
      ),
    3: async () => {
      // The copy does not know of the cancellation.
      expect(await producer.stats()).toMatchObject({ paused: true, queued: 1 });
      await cancel();
    },
  });
  // What the journal knows is restored with its txhash, and followed to its end.
  await untilCompleted(3);
  await enqueue(2, 'forgotten');
  await enqueue(1, 'after');
  await untilCompleted(4);
  expect(sandbox.stats(ACCOUNT).arrivals).toBe(4);
  expectPace(sandbox, ACCOUNT);
});

it('add and remove an account', async () => {
  const file = host.path('etc/payouts/accounts.json');
  for (const copy of [`etc/payouts/${ACCOUNT}.key`, 'new-key']) {
    await cp(host.path('etc/payouts/secrets/gateway-secret-key'), host.path(copy));
  }
  const write = async (...platformIds: number[]): Promise<void> => {
    const entries = platformIds.map((platformId) => ({
      ...{ platformId, baseUrl: sandbox.url, secretKeyFile: `./${platformId}.key` },
    }));
    await writeFile(file, JSON.stringify(entries));
  };
  await write(ACCOUNT);
  await host.writeSettings(`PAYOUT_ACCOUNTS_FILE=${file}\n`);
  await startWorker();
  const other = openProducer(host.redisUrl, OTHER_ACCOUNT);
  const outputs = await follow('accounts', {
    0: async () => write(ACCOUNT, OTHER_ACCOUNT),
    1: async () => {
      await enqueue(1, 'other', other);
      await untilCompleted(1, other);
      await other.enqueue({ ...LATER, payoutId: 'left' });
    },
    2: async () => write(ACCOUNT),
  });
  expect(outputs[1]).toMatch(/paused/);
  await enqueue(1, 'last');
  await untilCompleted(2);
  expect(await other.stats()).toMatchObject({ completed: 1, queued: 0, cancelled: 1, paused: true });
});

it('upgrade and go back', async () => {
  await startWorker();
  const [output = ''] = await follow('upgrade');
  expect(output.match(/^\d+\.\d+\.\d+/gm)).toHaveLength(2);
  await enqueue(2, 'after');
  await untilCompleted(3);
  expectPace(sandbox, ACCOUNT);
});

it('a payout is failed', async () => {
  await startWorker();
  await restartSandbox({ failShare: 1 });
  await producer.enqueue({ payoutId: 'invoice-77', paymentId: 6, amount: '12.5', addressTo: WALLET });
  const { state, txhash = '' } = await producer.waitFor('invoice-77', { timeoutMs: 30_000 });
  expect(state).toBe('failed');
  host.says('TXHASH', txhash);
  await follow('failed');
  expect((await producer.get('invoice-77-again'))?.reference).toBe('invoice-77');
});

it('the balance fell unexplained', async () => {
  await host.shell('echo BALANCE_EVERY_MS=1000 >> /etc/payouts/payouts.env');
  await startWorker();
  const reconcile = async (): Promise<string> => (await host.shell('payouts reconcile')).output;
  await until('the balance is judged', async () => /unexplained +0$/m.test(await reconcile()));
  const account = { baseUrl: sandbox.url, platformId: ACCOUNT, secretKey: SECRET_KEY };
  const thief = createGatewayClient({ ...account, logger: silentLogger, clock: systemClock });
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
