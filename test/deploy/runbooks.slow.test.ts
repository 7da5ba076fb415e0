import { readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { until } from '../support/until.js';
import { closeAfterTest } from '../worker/support/close-after-test.js';
import { expectPace } from '../worker/support/payout-world.js';

import { openRunbookHost, type RunbookHost } from './runbook-host.js';
import { cents, numbered } from '../support/account.js';

/** The runbooks on which money hangs, line by line: the commands are taken from the page itself. */

const ACCOUNT = 4242;
const SECRET_KEY = 'k-old-0123456789';
const LATER = { paymentId: 1, amount: '1', addressTo: 'wallet-later', notBefore: '2099-01-01T00:00:00Z' };

const accounts = [{ platformId: ACCOUNT, secretKey: SECRET_KEY }];
let sandbox: Sandbox;
let host: RunbookHost;
let producer: PayoutProducer;

beforeEach(async () => {
  sandbox = await startSandbox({ accounts, settleAfterMs: 200 });
  host = closeAfterTest(await openRunbookHost(sandbox.url, SECRET_KEY));
  producer = openProducer(host.redisUrl);
});
afterEach(async () => sandbox.close());

const openProducer = (redisUrl: string): PayoutProducer =>
  closeAfterTest(new PayoutProducer({ redisUrl, platformId: ACCOUNT }));

/** Runs the blocks of a page marked `sh`. @param before - what its words say has to happen before a block */
async function follow(page: string, before: Readonly<Record<number, () => unknown>> = {}): Promise<void> {
  const text = await readFile(new URL(`../../docs/runbooks/${page}.md`, import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
  expect(blocks).not.toEqual([]);
  for (const [index, block] of blocks.entries()) {
    await before[index]?.();
    const { code, output } = await host.shell(block);
    if (code !== 0) throw new Error(`This block ended with ${String(code)}:\n${block}\n${output}`);
  }
}

const enqueue = async (count: number, prefix: string): Promise<unknown> =>
  producer.enqueueMany(cents(numbered(count, prefix)));

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
      // The same gateway with another key.
      await sandbox.close();
      const port = Number(new URL(sandbox.url).port);
      sandbox = await startSandbox({ accounts: [{ platformId: ACCOUNT, secretKey }], settleAfterMs: 200, port });
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
  const cancel = async (): Promise<void> => {
    expect(await host.shell('payouts cancel wrong --reason "wrong file"')).toMatchObject({ code: 0 });
  };
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
