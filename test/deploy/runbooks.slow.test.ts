import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { keySigner } from '../../src/control/keys/signing-key.js';
import { PayoutProducer, type PayoutProducerOptions } from '../../src/control/payout-producer.js';
import { startSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { findFreePort } from '../../src/sandbox/local-redis.js';
import { writeKeyring, writePrivateKey } from '../control/support/key-files.js';
import { keyEntry, TEST_AUDIENCE, testKey } from '../control/support/keys.js';
import { cents, numbered } from '../support/account.js';
import { findBuiltProgram } from '../support/built-program.js';
import { startProgram } from '../support/cli.js';
import { until } from '../support/until.js';
import { closeAfterTest, makeFolder } from '../worker/support/close-after-test.js';
import { expectPace } from '../worker/support/payout-world.js';

/** The runbooks on which money hangs, line by line: the commands are taken from the page itself. */

/** Of both Redis: the operator has exported it as REDISCLI_AUTH. */
const PASSWORD = 'runbook-0123456789';
const FOLDERS = [
  'bin',
  'run',
  'backup',
  'etc/payouts/secrets',
  'etc/redis',
  'var/lib/payouts/journal',
  'var/lib/redis',
];

/** Short times; the interval between sends is the real one. */
const QUICK = `LEASE_MS=1500
TAKEOVER_QUARANTINE_MS=1000
IN_FLIGHT_MAX_MS=2000
STATUS_POLL_MIN_MS=200
STATUS_POLL_MAX_MS=1000
HEALTH_PORT=0
`;

type RunbookHost = Awaited<ReturnType<typeof openRunbookHost>>;

/**
 * A machine as docs/runbooks has it, in a folder: /etc/payouts, /var/lib and /backup lie there, `payouts` is the built
 * program with the settings of /etc/payouts/payouts.env, and `systemctl` starts and ends real processes.
 */
async function openRunbookHost(gatewayUrl: string, secretKey: string) {
  const folder = await makeFolder('runbook');
  const { dir: root } = folder;
  const [redisPort, newRedisPort] = [await findFreePort(), await findFreePort()];
  const path = (file: string) => join(root, file);
  const urlOf = (port: number) => `redis://:${PASSWORD}@127.0.0.1:${port}`;

  /** Paths and names of the page, as they are here. */
  function translate(script: string) {
    return script
      .replace(/ -o \w+ -g \w+|runuser -u redis -- |ssh redis-old.example /g, '')
      .replaceAll('-h redis-old.example', `-p ${redisPort}`)
      .replaceAll('-h redis-new.example', `-p ${newRedisPort}`)
      .replaceAll('redis-old.example 6379', `127.0.0.1 ${redisPort}`)
      .replaceAll('redis-old.example', `127.0.0.1:${redisPort}`)
      .replaceAll('redis-new.example', `127.0.0.1:${newRedisPort}`)
      .replace(/\/(etc\/payouts|etc\/redis|var\/lib|backup)\b/g, `${root}/$1`);
  }

  async function shell(script: string) {
    const { code, stdout, stderr } = await startProgram('bash', ['-euo', 'pipefail', '-c', translate(script)], {
      cwd: root,
      env: { PATH: `${path('bin')}:${process.env['PATH'] ?? ''}`, HOME: root, REDISCLI_AUTH: PASSWORD },
    }).result;
    return { code, output: stdout + stderr };
  }

  async function writeProgram(name: string, script: string) {
    await writeFile(path(`bin/${name}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  for (const each of FOLDERS) await mkdir(path(each), { recursive: true, mode: 0o700 });
  await writeFile(path('etc/payouts/secrets/redis-url'), urlOf(redisPort), { mode: 0o600 });
  await writeFile(path('etc/payouts/secrets/gateway-secret-key'), secretKey, { mode: 0o600 });
  await writeFile(
    path('etc/payouts/payouts.env'),
    `REDIS_URL_FILE=${path('etc/payouts/secrets/redis-url')}
SEND_JOURNAL_DIR=${path('var/lib/payouts/journal')}
GATEWAY_PLATFORM_ID=4242
GATEWAY_BASE_URL=${gatewayUrl}
GATEWAY_SECRET_KEY_FILE=${path('etc/payouts/secrets/gateway-secret-key')}
${QUICK}`,
  );
  const conf = path('etc/redis/redis.conf');
  await writeFile(conf, redisConf(path('var/lib/redis'), redisPort));
  const payouts = `exec ${process.execPath} ${findBuiltProgram()} "$@"`;
  await writeProgram('payouts', `set -a; . ${path('etc/payouts/payouts.env')}; set +a\n${payouts}`);
  await writeProgram('redis-cli', `PATH=\${PATH#*:}; exec redis-cli -p ${redisPort} "$@"`);
  await writeProgram('npm', 'exit 0');
  await writeProgram('systemctl', systemctl(path('run'), conf));
  await shell('systemctl start redis-server');
  await until('Redis responds', async () => (await shell('redis-cli PING')).output.includes('PONG'));

  return {
    ...{ path, shell, redisUrl: urlOf(redisPort), newRedisUrl: urlOf(newRedisPort) },
    async startNewRedis() {
      const dir = path('var/lib/redis-new');
      await mkdir(dir);
      await writeFile(join(dir, 'conf'), redisConf(dir, newRedisPort));
      await shell('redis-server /var/lib/redis-new/conf --daemonize yes --logfile /var/lib/redis-new/log');
    },
    async close() {
      await shell('systemctl stop payouts-worker');
      for (const port of [redisPort, newRedisPort]) await shell(`redis-cli -p ${port} SHUTDOWN NOSAVE || true`);
      await folder.close();
    },
  };
}

const systemctl = (run: string, conf: string) => `unit=$2; pidfile=${run}/$unit.pid
runs() { [ -d /proc/$1 ] && ! grep -q '^State:.Z' /proc/$1/status; }
stop() {
  [ -f $pidfile ] || return 0
  pid=$(cat $pidfile); kill $pid || true
  while runs $pid; do sleep 0.1; done
  rm $pidfile
}
start() {
  case $unit in
  payouts-worker) set -- payouts worker ;;
  redis-server) set -- redis-server ${conf} ;;
  esac
  setsid "$@" >> ${run}/$unit.log 2>&1 < /dev/null &
  echo $! > $pidfile
}
case $1 in
stop) stop ;;
start) start ;;
restart) stop; start ;;
disable) unit=$3; pidfile=${run}/$unit.pid; stop ;;
try-restart) ;;
esac`;

/** With the settings that docs/redis.md asks for, and a password. */
const redisConf = (folder: string, port: number) => `dir ${folder}
port ${port}
requirepass ${PASSWORD}
appendonly yes
appendfsync always
aof-load-truncated no
maxmemory-policy noeviction
save ""
`;

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

const accounts = [{ platformId: ACCOUNT, secretKey: SECRET_KEY }];
let sandbox: Sandbox;
let host: RunbookHost;
let producer: PayoutProducer;

beforeEach(async () => {
  sandbox = await startSandbox({ accounts, settleAfterMs: 200, failAddresses: [FAILS] });
  host = closeAfterTest(await openRunbookHost(sandbox.url, SECRET_KEY));
  producer = openProducer(host.redisUrl);
});
afterEach(async () => sandbox.close());

const openProducer = (redisUrl: string, signing: Pick<PayoutProducerOptions, 'signer' | 'audience'> = {}) =>
  closeAfterTest(new PayoutProducer({ redisUrl, platformId: ACCOUNT, ...signing }));

/**
 * Runs the blocks of a page marked `sh`.
 * @param before - what its words say has to happen before a block
 * @param values - what an operator puts in place of words of the page
 * @returns what they printed
 */
async function follow(
  page: string,
  before: Readonly<Record<number, () => unknown>> = {},
  values: Readonly<Record<string, string>> = {},
) {
  const text = await readFile(new URL(`../../docs/runbooks/${page}.md`, import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
  expect(blocks).not.toEqual([]);
  let printed = '';
  for (const [index, block] of blocks.entries()) {
    await before[index]?.();
    const own = Object.entries(values).reduce((text, [name, value]) => text.replaceAll(name, value), block);
    const { code, output } = await host.shell(own);
    if (code !== 0) throw new Error(`This block ended with ${String(code)}:\n${block}\n${output}`);
    printed += output;
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
  await host.shell(`printf '%s\\n' ${settings.join(' ')} PAYOUT_AUDIENCE=${TEST_AUDIENCE} >> /etc/payouts/payouts.env`);
  await host.shell('systemctl start payouts-worker');
  const log = async () => readFile(host.path('run/payouts-worker.log'), 'utf8');
  // What was signed before the worker's journal was begun is held.
  await until('it sends', async () => (await log()).includes('acquired sender lease'));

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
      await until('the worker has it', async () => (await log()).includes('the keyring was read again'));
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
