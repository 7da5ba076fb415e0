import { readFile, rename, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { keySigner } from '../../src/control/keys/signing-key.js';
import { PayoutProducer, type PayoutProducerOptions } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { startLocalRedis } from '../../src/sandbox/local-redis.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { cents, numbered } from '../support/account.js';
import { until } from '../support/until.js';
import { afterTest, closeAfterTest, folderOfTest } from '../worker/support/close-after-test.js';
import { expectPace } from '../worker/support/payout-world.js';
import { blocksOf, openRunbookHost, REDIS_PASSWORD, type OwnWords, type RunbookHost } from './support/runbook-host.js';

/** The runbooks on which money hangs, line by line: the commands are taken from the page itself. */

const ACCOUNT = 4242;
const FAILS = 'wallet-fails';
const APPROVED_ABOVE_A_CENT = `version: 1
platformId: "${ACCOUNT}"
default: send
groups: { finance: [ann, bob] }
approvals: { requestedBy: any }
rules:
  - { name: four-eyes, when: { paymentId: ["1"] }, cap: { amount: "0.01" }, over: { approve: { by: finance, quorum: 1 } } }
`;
const SECRET_KEY = 'k-old-0123456789';
const LATER = { paymentId: 1, amount: '1', addressTo: 'wallet-later', notBefore: '2099-01-01T00:00:00Z' };

const SECOND = { platformId: 4243, secretKey: 'k-second-0123456789' };
const accounts = [{ platformId: ACCOUNT, secretKey: SECRET_KEY }, SECOND];
let sandbox: Sandbox;
let host: RunbookHost;
let producer: PayoutProducer;

beforeEach(async () => {
  sandbox = await startSandbox({ accounts, settleAfterMs: 200, failAddresses: [FAILS] });
  host = closeAfterTest(await openRunbookHost(sandbox.url, SECRET_KEY));
  producer = openProducer(host.redisUrl);
});
afterEach(async () => sandbox.close());

const openProducer = (redisUrl: string, own: Partial<PayoutProducerOptions> = {}) =>
  closeAfterTest(new PayoutProducer({ redisUrl, platformId: ACCOUNT, ...own }));

/**
 * Runs the blocks of a page marked `sh`.
 * @param before - what its words say has to happen before a block
 * @returns what they printed
 */
async function follow(page: string, before: Readonly<Record<number, () => unknown>> = {}, values: OwnWords = {}) {
  const blocks = await blocksOf(`runbooks/${page}`);
  expect(blocks).not.toEqual([]);
  let printed = '';
  for (const [index, block] of blocks.entries()) {
    await before[index]?.();
    printed += await host.run(block, values);
  }
  return printed;
}

const enqueue = async (count: number, prefix: string) => producer.enqueueMany(cents(numbered(count, prefix)));

async function untilCompleted(count: number, of = producer) {
  await until(
    `${count} payouts are completed`,
    async () => (await of.stats().catch(() => undefined))?.completed === count,
  );
}

async function startWorker() {
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

it('undo a wrong batch, retry, list an address, top up, pay a failed payout again, accept a drop, upgrade', async () => {
  await startWorker();
  const single = (payoutId: string, addressTo = `wallet-${payoutId}`) =>
    producer.enqueue({ payoutId, paymentId: 1, amount: '0.01', addressTo });
  const settled = async (payoutId: string, state: string) =>
    until(`${payoutId} is ${state}`, async () => (await producer.get(payoutId))?.state === state);

  const batch = '2030-01-salaries';
  await producer.enqueueMany(numbered(3, 'salary').map((payoutId) => ({ ...LATER, payoutId, batch })));
  expect(await follow('wrong-batch')).toMatch(
    /3 payouts held\.[^]*3 payouts cancelled\.[^]*3 payouts accepted under new ids\./,
  );
  expect(await producer.stats()).toMatchObject({ cancelled: 3, queued: 3 });

  sandbox.addFaults([{ kind: 'reject', message: 'Not enough funds', times: 1 }]);
  await single('poor');
  await settled('poor', 'rejected');
  await follow('rejected');
  await settled('poor', 'completed');

  sandbox.addFaults([{ kind: 'reject', message: 'IP address is not whitelisted', times: 1 }]);
  await single('unlisted');
  await until('it is paused', async () => (await producer.stats()).paused);
  expect(await follow('ip-address')).toMatch(/sends again/);
  await follow('balance-low', {
    1: async () => {
      expect((await producer.stats()).paused).toBe(true);
    },
  });
  expect((await producer.stats()).paused).toBe(false);

  await single('invoice-77', FAILS);
  await settled('invoice-77', 'failed');
  const { gatewayId = '' } = (await producer.get('invoice-77')) ?? {};
  await follow('failed', {}, { GATEWAY_ID: gatewayId });
  await settled('invoice-77-again', 'completed');
  await follow('balance-fell');
  await follow('upgrade');
  await single('last');
  await settled('last', 'completed');
  expectPace(sandbox, ACCOUNT);
}, 400_000);

it('act on a stolen key', async () => {
  const [shop, stolen, operator] = [testKey(1), testKey(2), testKey(3)];
  const writeKeys = async (revoked: boolean) =>
    writeKeyring(host.path('etc/payouts/keys.json'), [
      keyEntry(shop),
      keyEntry(stolen, { name: 'ann-laptop', role: 'approver', person: 'ann', revoked }),
      keyEntry(testKey(4), { name: 'bob', role: 'approver', person: 'bob' }),
      keyEntry(operator, { name: 'olga', role: 'operator', person: 'olga' }),
    ]);
  await writeKeys(false);
  await writePrivateKey(host.path('ann-laptop.pem'), stolen);
  await writePrivateKey(host.path('olga.pem'), operator);
  await writeFile(host.path('etc/payouts/policy.yaml'), APPROVED_ABOVE_A_CENT, { mode: 0o600 });
  const settings = ['PAYOUT_KEYS_FILE=/etc/payouts/keys.json', 'PAYOUT_POLICY_FILE=/etc/payouts/policy.yaml'];
  await host.addSettings(...settings, `PAYOUT_AUDIENCE=${TEST_AUDIENCE}`);
  await host.shell('systemctl start payouts-worker');
  // What was signed before the worker's journal was begun is held.
  await until('it sends', async () => (await host.readWorkerLog()).includes('acquired sender lease'));

  const signing = openProducer(host.redisUrl, { signer: keySigner('shop', shop), audience: TEST_AUDIENCE });
  const payout = { ...LATER, amount: '0.02', notBefore: undefined };
  await signing.enqueueMany([
    { ...payout, payoutId: 'invoice-77' },
    { ...payout, payoutId: 'invoice-78', notBefore: new Date(Date.now() + 86_400_000).toISOString() },
  ]);
  const approved = await host.shell('payouts approve invoice-77 invoice-78 --key ann-laptop.pem --yes');
  expect(approved).toMatchObject({ code: 0 });
  await untilCompleted(1, signing);
  const followed = await follow('key-stolen', {
    1: async () => {
      await writeKeys(true);
      await host.shell('kill -HUP $(cat run/payouts-worker.pid)');
      await until('the worker has it', async () => (await host.readWorkerLog()).includes('the keyring was read again'));
    },
  });
  expect(followed).toMatch(/ann-laptop .*revoked/);
  expect(followed).toMatch(/invoice-77 [^]*invoice-78 |invoice-78 [^]*invoice-77 /);
  expect(await signing.get('invoice-78')).toMatchObject({ state: 'cancelled' });
  // An approval by the revoked key counts no more, and what needs none is paid.
  await signing.enqueueMany([{ ...payout, payoutId: 'needs-one' }, ...cents(['needs-none'])]);
  await untilCompleted(2, signing);
  expect(await signing.get('needs-one')).toMatchObject({ state: 'held', held: { rule: 'four-eyes' } });
  expect(sandbox.stats(ACCOUNT).arrivals).toBe(2);
}, 120_000);

it('back up and restore Redis', async () => {
  await startWorker();
  await producer.enqueue({ ...LATER, payoutId: 'wrong' });
  await follow('backup');
  await enqueue(2, 'forgotten');
  await untilCompleted(3);
  const cancel = async () => {
    expect(await host.shell('payouts cancel wrong --reason "wrong file"')).toMatchObject({ code: 0 });
  };
  await cancel();
  await follow('restore-redis', {
    2: async () =>
      until('the worker objects', async () =>
        (await host.shell('payouts stats || true')).output.includes('adopt-ledger'),
      ),
    3: async () => {
      // The copy does not know of the cancellation; the journal does.
      expect(await producer.stats()).toMatchObject({ paused: true, queued: 0, cancelled: 1 });
    },
  });
  // What the journal knows is restored with its gatewayId, and followed to its end.
  await untilCompleted(3);
  await enqueue(2, 'forgotten');
  await enqueue(1, 'after');
  await untilCompleted(4);
  expect(sandbox.stats(ACCOUNT).arrivals).toBe(4);
  expectPace(sandbox, ACCOUNT);
});

it('add an account, and remove it', async () => {
  const { platformId, secretKey } = SECOND;
  const writeAccounts = async (...platformIds: readonly number[]) => {
    const rows = platformIds.map((id) => ({ platformId: id, baseUrl: sandbox.url, secretKeyFile: `./${id}.key` }));
    await writeFile(host.path('etc/payouts/accounts.json'), JSON.stringify(rows), { mode: 0o644 });
  };
  await writeFile(host.path('etc/payouts/4242.key'), SECRET_KEY, { mode: 0o640 });
  await writeAccounts(ACCOUNT);
  await host.shell("sed -i '/^GATEWAY_/d' /etc/payouts/payouts.env");
  await host.addSettings('PAYOUT_ACCOUNTS_FILE=/etc/payouts/accounts.json');
  await startWorker();
  const second = openProducer(host.redisUrl, { platformId });
  const later = (payoutId: string, of = 'later') => ({ ...LATER, payoutId, batch: of });
  const followed = await follow('accounts', {
    0: async () => {
      await writeAccounts(ACCOUNT, platformId);
      await writeFile(host.path('new-key'), secretKey, { mode: 0o600 });
    },
    1: async () => {
      await second.enqueueMany(cents(['paid']));
      await untilCompleted(1, second);
      sandbox.addFaults([{ kind: 'reject', message: 'Not enough funds', times: 1 }]);
      await second.enqueueMany(cents(['poor']));
      await until('one is rejected', async () => (await second.stats()).rejected === 1);
      await second.enqueueMany([later('later-1'), later('later-2'), later('held', 'held')]);
      await host.run(`payouts hold --account ${platformId} --batch held --yes --reason "ticket 812"`);
    },
    2: async () => {
      expect(await second.stats()).toMatchObject({ queued: 0, held: 0, rejected: 0, cancelled: 4, completed: 1 });
      await writeAccounts(ACCOUNT);
    },
  });
  expect(followed).toMatch(/Account 4243: [^]*No problems found/);
  const listed = await readFile(host.path('backup/4243-queued.csv'), 'utf8');
  expect(listed.match(/^later-[12],/gm)).toHaveLength(2);
  await enqueue(1, 'after');
  await untilCompleted(2);
  for (const each of [ACCOUNT, platformId]) expectPace(sandbox, each);
}, 120_000);

it('close an account of which nothing waits', async () => {
  await startWorker();
  const [, close = ''] = await blocksOf('runbooks/accounts');
  await host.run(close, { 4243: String(ACCOUNT) });
  expect(await producer.stats()).toMatchObject({ paused: true, completed: 1 });
});

it('go on without a host that is lost, on one of its name', async () => {
  await startWorker();
  await host.shell('kill -9 $(cat run/payouts-worker.pid); rm run/payouts-worker.pid');
  await rename(host.path('var/lib/payouts/journal'), host.path('lost-disk'));
  await enqueue(2, 'waits');
  await follow('host-lost', {
    1: async () => {
      await until('the worker waits for the adoption', async () =>
        (await host.readWorkerLog()).includes('payouts audit adopt-journal'),
      );
      expect(sandbox.stats(ACCOUNT).arrivals).toBe(1);
    },
  });
  await untilCompleted(3);
  expectPace(sandbox, ACCOUNT);
}, 120_000);

it('resolve what is unknown, many at once', async () => {
  await host.addSettings('MAX_UNKNOWNS_IN_A_ROW=10');
  await startWorker();
  sandbox.addFaults([{ kind: 'drop-after', times: 2 }]);
  sandbox.addFaults([{ kind: 'drop-before', times: 3 }]);
  await enqueue(5, 'cut');
  await until('five are unknown', async () => (await producer.stats()).unknown === 5);
  const paid = new Map(sandbox.payments(ACCOUNT).map((payment) => [payment.addressTo, payment]));
  const csv = async (name: string, rows: readonly (readonly (string | undefined)[])[]) =>
    writeFile(host.path(name), rows.map((row) => `${row.join(',')}\n`).join(''));
  const followed = await follow('unknown', {
    0: async () => {
      const Created = new Date().toISOString();
      const rows = [...paid.values()].map(({ txhash, addressTo, amount }) => [txhash, addressTo, amount, Created]);
      await csv('payments.csv', [['Hash', 'To', 'Amount', 'Created'], ...rows]);
    },
    2: async () => {
      const [names = [], ...rows] = (await readFile(host.path('unknown.csv'), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => line.split(','));
      const [address, gatewayId] = [names.indexOf('address_to'), names.indexOf('gateway_id')];
      const filled = rows.map((row) => row.with(gatewayId, paid.get(row[address] ?? '')?.txhash ?? ''));
      await csv('paid.csv', [names, ...filled.filter((row) => row[gatewayId] !== '')]);
      await csv('unpaid.csv', [names, ...filled.filter((row) => row[gatewayId] === '')]);
      const tried = 'payouts resolve --file unpaid.csv --not-sent --dry-run --reason "ticket 813"';
      await until('the requests can no longer arrive', async () => (await host.shell(tried)).code === 0);
    },
  });
  expect(followed).toMatch(/2 payouts/);
  await untilCompleted(6);
  expect(await producer.stats()).toMatchObject({ unknown: 0 });
  expectPace(sandbox, ACCOUNT);
}, 120_000);

it('give up a replica that is gone for good', async () => {
  const startReplica = async () => {
    const own = ['--replicaof', `127.0.0.1 ${host.redisPort}`, '--masterauth', REDIS_PASSWORD];
    const server = await startLocalRedis({ dir: await folderOfTest('replica'), args: own });
    afterTest(async () => server.stop());
    return server;
  };
  await startReplica();
  const gone = await startReplica();
  const followers = async () => (await host.shell('redis-cli INFO replication')).output;
  await until('both follow', async () => (await followers()).match(/state=online/g)?.length === 2);
  await startWorker();
  await enqueue(1, 'waits');
  await gone.stop();
  await until('it is missed', async () => (await followers()).includes('connected_slaves:1'));
  const { arrivals } = sandbox.stats(ACCOUNT);
  await expect(enqueue(1, 'refused')).rejects.toThrow(/only 1 of 2 replicas acknowledged it/);
  await until('doctor misses it', async () => (await host.shell('payouts doctor')).output.includes('Replicas missing'));
  expect(sandbox.stats(ACCOUNT).arrivals).toBe(arrivals);
  await follow('replicas-missing');
  await enqueue(1, 'after');
  await until('it is paid', async () => (await producer.get('after-1'))?.state === 'completed');
  expectPace(sandbox, ACCOUNT);
}, 120_000);

it('release what is held', async () => {
  const shop = testKey(1);
  const writeKeys = async (...keys: Parameters<typeof keyEntry>[]) =>
    writeKeyring(
      host.path('etc/payouts/keys.json'),
      keys.map((key) => keyEntry(...key)),
    );
  await writeKeys([testKey(2), { name: 'other' }]);
  await host.addSettings('PAYOUT_KEYS_FILE=/etc/payouts/keys.json', `PAYOUT_AUDIENCE=${TEST_AUDIENCE}`);
  const signing = openProducer(host.redisUrl, { signer: keySigner('shop', shop), audience: TEST_AUDIENCE });
  await host.shell('systemctl start payouts-worker');
  // What was signed before the worker's journal was begun is held for that.
  await until('it sends', async () => (await host.readWorkerLog()).includes('acquired sender lease'));
  await signing.enqueueMany(cents(numbered(2, 'salary')).map((each) => ({ ...each, batch: '2030-01-salaries' })));
  await until('both are held', async () => (await producer.stats()).held === 2);
  expect(sandbox.stats(ACCOUNT).arrivals).toBe(0);
  await writeKeys([shop]);
  await host.shell('kill -HUP $(cat run/payouts-worker.pid)');
  await until('the worker has it', async () => (await host.readWorkerLog()).includes('the keyring was read again'));
  expect(await follow('held')).toMatch(/2 payouts[^]*2 payouts/);
  await untilCompleted(2);
}, 120_000);
