import { createHash } from 'node:crypto';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sha256 } from '@noble/hashes/sha2.js';
import { createBase58check } from '@scure/base';
import { Redis } from 'ioredis';
import { startLocalRedis, type LocalRedis } from '../../src/sandbox/local-redis.js';
import type * as Sandbox from '../../src/sandbox/index.js';
import { createFakeClock } from '../doubles/fake-clock.js';
import { until } from '../support/until.js';

/**
 * Makes `test/upgrade/fixtures/NAME` with the programs of a built version: what two accounts of that version leave in Redis and on
 * the disk. One account is plain, the other has keys and a policy.
 *
 *     node --import tsx test/upgrade/make-fixture.ts FOLDER_OF_THE_BUILT_VERSION NAME
 */

const [build = '', name = ''] = process.argv.slice(2);
const PROGRAM = resolve(build, 'dist/cli/main.js');
const OUT = fileURLToPath(new URL(`fixtures/${name}`, import.meta.url));
const DAY_MS = 86_400_000;
const SECRET = 'k-fixture-0123456789';
const PLAIN = 4242;
const SIGNED = 4343;

const TRON = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const TRON_2 = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
const XRP = 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe';
const TON_UNBOUNCEABLE = 'UQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqEBI';
const TON = 'EQCD39VS5jcptHL8vMjEXrzGaRcCVYto7HUn4bpAOg8xqB2N';
const CASH = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const CASH_2 = 'bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy';
const SEGWIT = 'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4';
const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
/** Recipients to whom the gateway behaves in its own way. */
const TROUBLE = {
  rejected: tronOf('rejected'),
  lost: tronOf('lost'),
  failed: tronOf('failed'),
  hung: tronOf('hung'),
  denied: '0x52908400098527886E0F7030069857D2E4169EE7',
};
const CAPITAL_TXHASH = '0xABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789';

function tronOf(text: string): string {
  const hash = createHash('sha256').update(text).digest();
  return createBase58check(sha256).encode(Uint8Array.from([0x41, ...hash.subarray(0, 20)]));
}

const POLICY = `version: 1
platformId: '${SIGNED}'
default: send
usd: { pinned: { '1': '60000', '2': '3000', '4': '0.5', '5': '6', '6': '1', '7': '1', '11': '400' } }
groups: { finance: [Ann, bob, Carol Diaz] }
approvals: { expireAfter: 7d }
rules:
  - { name: never-more, cap: { usd: '50000' }, over: refuse }
  - { name: four-eyes, when: { paymentId: ['7'] }, cap: { amount: '250' }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: day, when: { paymentId: ['6'] }, cap: { amount: '900', within: 24h }, over: wait }
  - { name: address-day, when: { paymentId: ['5'] }, cap: { amount: '50', within: 24h, per: address }, over: wait }
  - { name: denied, when: { addressIn: deny.txt }, over: refuse }
  - { name: cool-down, when: { address: new, paymentId: ['11'] }, over: { wait: 24h } }
  - { name: own-exchange, when: { addressIn: exchange.txt, paymentId: ['4'] }, cap: { amount: '500' }, over: refuse }
`;

const dir = mkdtempSync(join(tmpdir(), 'payouts-fixture-'));
const journals = join(dir, 'journal');
const control = join(dir, 'control');
const archive = join(dir, 'archive');
for (const folder of [journals, control, archive, join(dir, 'redis')]) mkdirSync(folder, { mode: 0o700 });

const past = await createFakeClock(dir, 'clock');
await past.set(-3 * DAY_MS);
let time = past.environment;
let redis: LocalRedis = await startLocalRedis({
  dir: join(dir, 'redis'),
  environment: { ...process.env, ...time } as Record<string, string>,
});
const children: ChildProcess[] = [];

function environment(platformId: number, extra: Record<string, string> = {}): Record<string, string> {
  const signed = platformId === SIGNED;
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: dir,
    REDIS_URL: redis.url,
    GATEWAY_PLATFORM_ID: String(platformId),
    GATEWAY_SECRET_KEY: SECRET,
    GATEWAY_BASE_URL: sandboxUrl,
    SEND_JOURNAL_DIR: journals,
    PAYOUT_ARCHIVE_DIR: archive,
    PAYOUT_RETENTION_DAYS: '1',
    HEALTH_PORT: '0',
    LOG_LEVEL: 'error',
    LEASE_MS: '1000',
    TAKEOVER_QUARANTINE_MS: '500',
    IN_FLIGHT_MAX_MS: '1000',
    STATUS_POLL_MIN_MS: '200',
    STATUS_POLL_MAX_MS: '1000',
    MAX_UNKNOWNS_IN_A_ROW: '50',
    MAX_REJECTIONS_IN_A_ROW: '50',
    ...(signed && {
      PAYOUT_KEYS_FILE: join(control, 'keys.yaml'),
      PAYOUT_POLICY_FILE: join(control, 'policy.yaml'),
      PAYOUT_WORKER_KEY_FILE: join(control, 'worker-1.pem'),
      PAYOUT_WORKER_KEY_NAME: 'worker-1',
      PAYOUT_SIGNING_KEY_FILE: join(control, 'shop.pem'),
      PAYOUT_SIGNING_KEY_NAME: 'shop',
    }),
    ...time,
    ...extra,
  };
}

function run(platformId: number, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    env: environment(platformId),
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`payouts ${args.join(' ')} ended with ${String(status)}:\n${stdout}${stderr}`);
  return stdout;
}

function start(env: Record<string, string>, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  children.push(child);
  return child;
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  const ended = new Promise((done) => child.once('exit', done));
  child.kill(signal);
  await ended;
}

function enqueue(
  platformId: number,
  payoutId: string,
  paymentId: number,
  amount: string,
  to: string,
  ...more: string[]
) {
  const fields = ['--payment-id', String(paymentId), '--amount', amount, '--address-to', to];
  run(platformId, 'enqueue', '--payout-id', payoutId, ...fields, ...more);
}

function stateOf(platformId: number, payoutId: string): string {
  return (JSON.parse(run(platformId, 'get', payoutId, '--json')) as { state: string }).state;
}

async function untilStates(platformId: number, states: Record<string, string>): Promise<void> {
  for (const [payoutId, state] of Object.entries(states)) {
    await until(
      () => `${payoutId} is ${state}, and not ${stateOf(platformId, payoutId)}`,
      () => stateOf(platformId, payoutId) === state,
    );
  }
}

function makeKeys(): void {
  const entries = [
    ['shop', 'producer', 'Shop backend'],
    ['ann', 'approver', 'Ann'],
    ['bob', 'approver', 'bob'],
    ['carol', 'approver', 'Carol Diaz'],
    ['olga', 'operator', 'Olga P.'],
    ['worker-1', 'worker', 'Worker'],
  ].map(([key = '', role = '', person = '']) =>
    execFileSync(process.execPath, [
      ...[PROGRAM, 'keygen', key, '--role', role, '--person', person, '--out', join(control, `${key}.pem`)],
    ]).toString(),
  );
  writeFileSync(join(control, 'keys.yaml'), `version: 1\nkeys:\n${entries.join('')}`, { mode: 0o600 });
  writeFileSync(join(control, 'policy.yaml'), POLICY, { mode: 0o600 });
  writeFileSync(join(control, 'deny.txt'), `${TROUBLE.denied} # spelled as the police wrote it\n`, { mode: 0o600 });
  writeFileSync(join(control, 'exchange.txt'), `${XRP}\n`, { mode: 0o600 });
}

/** The long past: what was paid then is in the archive now, or was seen then. */
async function threeDaysAgo(): Promise<void> {
  enqueue(PLAIN, 'P-old', 6, '3', TRON, '--batch', 'october');
  const plain = start(environment(PLAIN), 'worker');
  await untilStates(PLAIN, { 'P-old': 'completed' });
  await end(plain);

  run(SIGNED, 'journal', 'adopt', '--yes', '--reason', 'new account, nothing was sent yet', '--by', 'olga');
  enqueue(SIGNED, 'S-old', 1, '0.5', SEGWIT, '--requested-by', 'Dora');
  enqueue(SIGNED, 'S-cash', 11, '0.1', CASH);
  const signed = start(environment(SIGNED), 'worker');
  await untilStates(SIGNED, { 'S-old': 'completed', 'S-cash': 'held' });
  await end(signed);
}

async function plainAccount(): Promise<void> {
  let worker = start(environment(PLAIN), 'worker');
  enqueue(PLAIN, 'P-paid', 6, '12.5', TRON, '--reference', 'invoice 77', '--metadata', '{"customer":1}');
  enqueue(PLAIN, 'P-failed', 6, '7', TROUBLE.failed, '--batch', 'october');
  enqueue(PLAIN, 'P-rejected', 6, '8', TROUBLE.rejected, '--batch', 'october');
  enqueue(PLAIN, 'P-unknown', 6, '9', TROUBLE.lost);
  enqueue(PLAIN, 'P-written-off', 6, '9.1', TROUBLE.lost);
  enqueue(PLAIN, 'P-vouched', 2, '0.2', TROUBLE.lost);
  enqueue(PLAIN, 'P-again', 6, '9.2', TROUBLE.lost);
  enqueue(PLAIN, 'P-followed', 1, '0.01', SEGWIT, '--symbol', 'USD');
  enqueue(PLAIN, 'P-cash-followed', 11, '0.25', CASH);
  enqueue(PLAIN, 'P-ton-followed', 5, '12.3', `${TON}:4711`);
  enqueue(PLAIN, 'P-xrp-followed', 4, '29.95', `${XRP}:00123`);
  enqueue(PLAIN, 'P-later', 6, '1', TRON, '--not-before', '2100-01-01T00:00:00Z');
  await untilStates(PLAIN, {
    ...{ 'P-paid': 'completed', 'P-failed': 'failed', 'P-rejected': 'rejected', 'P-unknown': 'unknown' },
    ...{ 'P-written-off': 'unknown', 'P-vouched': 'unknown', 'P-again': 'unknown', 'P-xrp-followed': 'in_progress' },
  });
  await new Promise((done) => setTimeout(done, 2_000));
  const why = ['--reason', 'found in the records', '--by', 'olga'];
  run(PLAIN, 'resolve', 'P-written-off', '--write-off', ...why);
  run(PLAIN, 'resolve', 'P-vouched', '--sent', '--txhash', CAPITAL_TXHASH, '--force', ...why);
  run(PLAIN, 'resolve', 'P-again', '--not-sent', ...why);
  await untilStates(PLAIN, { 'P-again': 'unknown' });
  await end(worker);

  writeFileSync(
    join(control, 'plain.yaml'),
    "version: 1\nplatformId: '4242'\ndefault: send\nrules: [{ name: most, cap: { count: '0', within: 1h }, when: { paymentId: ['9'] }, over: refuse }]\n",
    { mode: 0o600 },
  );
  worker = start(environment(PLAIN, { PAYOUT_POLICY_FILE: join(control, 'plain.yaml') }), 'worker');
  enqueue(PLAIN, 'P-held', 9, '5', TRON_2);
  await untilStates(PLAIN, { 'P-held': 'held' });
  enqueue(PLAIN, 'P-sending', 6, '6', TROUBLE.hung);
  await untilStates(PLAIN, { 'P-sending': 'sending' });
  await new Promise((done) => setTimeout(done, 1_000));
  await end(worker, 'SIGKILL');
  enqueue(PLAIN, 'P-cancelled', 6, '4', TRON);
  run(PLAIN, 'cancel', 'P-cancelled', '--reason', 'ordered twice', '--by', 'olga');
  enqueue(PLAIN, 'P-tron', 6, '0.1', TRON, '--batch', 'october');
  enqueue(PLAIN, 'P-segwit', 1, '0.02', SEGWIT, '--batch', 'october', '--priority', '3');
  enqueue(PLAIN, 'P-cash', 11, '0.3', CASH);
  enqueue(PLAIN, 'P-ton', 5, '2', TON, '--destination-tag', '4711');
  enqueue(PLAIN, 'P-xrp', 4, '277.2', `${XRP}:12345`);
  enqueue(PLAIN, 'P-ether', 2, '0.5', EVM);
}

async function signedAccount(): Promise<void> {
  const key = (who: string): string[] => ['--key', join(control, `${who}.pem`)];
  const why = (reason: string): string[] => ['--reason', reason];
  let worker = start(environment(SIGNED), 'worker');
  enqueue(SIGNED, 'S-paid', 6, '100', TRON, '--requested-by', 'bob', '--batch', 'october');
  enqueue(SIGNED, 'S-approved', 7, '260', EVM, '--requested-by', 'Dora');
  enqueue(SIGNED, 'S-waiting', 7, '255', EVM);
  enqueue(SIGNED, 'S-rejected', 7, '251', EVM);
  enqueue(SIGNED, 'S-denied', 2, '0.1', TROUBLE.denied);
  enqueue(SIGNED, 'S-unknown', 6, '50', TROUBLE.lost);
  enqueue(SIGNED, 'S-again', 4, '40', `${XRP}:12345`);
  enqueue(SIGNED, 'S-followed', 5, '30', `${TON}:4711`);
  await untilStates(SIGNED, {
    ...{ 'S-paid': 'completed', 'S-approved': 'held', 'S-waiting': 'held', 'S-rejected': 'held', 'S-denied': 'held' },
    ...{ 'S-unknown': 'unknown', 'S-again': 'unknown', 'S-followed': 'in_progress', 'S-cash': 'completed' },
  });
  run(SIGNED, 'approve', 'S-approved', 'S-waiting', '--yes', '--expires-in', '7d', ...key('ann'));
  run(SIGNED, 'reject', 'S-rejected', '--expires-in', '7d', ...key('carol'), ...why('not the address on the invoice'));
  run(SIGNED, 'approve', 'S-approved', '--yes', '--expires-in', '7d', ...key('bob'));
  await untilStates(SIGNED, { 'S-approved': 'completed' });
  run(SIGNED, 'pause', ...why('a look at the gateway'), '--by', 'olga');
  enqueue(SIGNED, 'S-paused', 4, '3', XRP + ':12345');
  await new Promise((done) => setTimeout(done, 3_000));
  run(SIGNED, 'resume', ...key('olga'), ...why('all is well'));
  run(SIGNED, 'resolve', 'S-again', '--not-sent', ...key('olga'), ...why('the gateway has no payment of it'));
  await untilStates(SIGNED, { 'S-again': 'completed' });
  enqueue(SIGNED, 'S-sending', 6, '60', TROUBLE.hung);
  await untilStates(SIGNED, { 'S-sending': 'sending' });
  await new Promise((done) => setTimeout(done, 1_000));
  await end(worker, 'SIGKILL');
  worker = start(environment(SIGNED), 'worker');
  await untilStates(SIGNED, { 'S-sending': 'unknown' });
  run(SIGNED, 'pause', ...why('before the upgrade'), '--by', 'olga');
  enqueue(SIGNED, 'S-queued', 4, '20', `${XRP}:12345`);
  await new Promise((done) => setTimeout(done, 3_000));
  await end(worker);
  enqueue(SIGNED, 'S-cancelled', 6, '4', TRON);
  run(SIGNED, 'cancel', 'S-cancelled', ...why('ordered twice'));
  enqueue(SIGNED, 'S-cash-known', 11, '0.2', CASH);
  enqueue(SIGNED, 'S-cash-new', 11, '0.2', CASH_2);
  // 100 + 50 + 60 are spent of the 900 a day.
  enqueue(SIGNED, 'S-fits', 6, '240', TRON_2, '--requested-by', 'Dora');
  enqueue(SIGNED, 'S-much', 6, '249', TRON_2);
  enqueue(SIGNED, 'S-more', 6, '249', TRON_2);
  // 30 of the 50 a day are spent.
  enqueue(SIGNED, 'S-ton-much', 5, '21', `${TON_UNBOUNCEABLE}:4711`);
}

/** Every key of both accounts with its content. Names of the machine and its folders do not belong into a fixture. */
async function dump(): Promise<Record<string, object>> {
  const client = new Redis(redis.url);
  const content: Record<string, unknown> = {};
  for (const key of (await client.keys('{payouts:*')).sort()) {
    // What BullMQ told listeners: nobody reads it later.
    if (/:(withdraw|transactionstatus):events$/.test(key)) continue;
    const type = await client.type(key);
    if (type === 'string') content[key] = { string: await client.get(key) };
    else if (type === 'hash') content[key] = { hash: await client.hgetall(key) };
    else if (type === 'set') content[key] = { set: await client.smembers(key) };
    else if (type === 'list') content[key] = { list: await client.lrange(key, 0, -1) };
    else if (type === 'zset') content[key] = { zset: await client.zrange(key, '0', '-1', 'WITHSCORES') };
    else if (type === 'stream') content[key] = { stream: await client.xrange(key, '-', '+') };
    else throw new Error(`${key} is a ${type}`);
  }
  client.disconnect();
  const text = JSON.stringify(content)
    .replaceAll(journals, '/var/lib/payouts/journal')
    .replaceAll(`\\"host\\":\\"${hostname()}\\"`, '\\"host\\":\\"payouts-1\\"');
  return JSON.parse(text) as Record<string, object>;
}

/** The present time of the machine in both steps: what the later one wrote is younger than its signatures' lifetime. */
async function makeAll(): Promise<void> {
  makeKeys();
  await threeDaysAgo();
  await redis.stop();
  time = {};
  redis = await startLocalRedis({ dir: join(dir, 'redis') });
  await plainAccount();
  await signedAccount();
  rmSync(OUT, { recursive: true, force: true });
  for (const folder of [journals, control, archive]) cpSync(folder, join(OUT, basename(folder)), { recursive: true });
  const payments = [PLAIN, SIGNED].flatMap((platformId) => sandbox.payments(platformId));
  writeFileSync(join(OUT, 'redis.json'), toLines(await dump()));
  writeFileSync(
    join(OUT, 'gateway.json'),
    toLines({
      at: new Date().toISOString(),
      ...Object.fromEntries(
        payments.map(({ txhash, paymentId, addressTo, amount, fee, settlesAs }) => [
          txhash,
          { paymentId, addressTo, amount, fee, settlesAs },
        ]),
      ),
    }),
  );
}

/** JSON with a member a line. */
function toLines(content: object): string {
  const members = Object.entries(content).map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  return `{\n${members.join(',\n')}\n}\n`;
}

const { startSandbox } = (await import(resolve(build, 'dist/sandbox/index.js'))) as typeof Sandbox;
const addresses = [SEGWIT, CASH, `${TON}:4711`, `${XRP}:00123`];
const sandbox = await startSandbox({
  accounts: [PLAIN, SIGNED].map((platformId) => ({ platformId, secretKey: SECRET })),
  settleAfterMs: 300,
  failAddresses: [TROUBLE.failed],
  faults: [
    { kind: 'json-500', endpoint: 'transactionstatus', platformId: PLAIN, addresses },
    { kind: 'json-500', endpoint: 'transactionstatus', platformId: SIGNED, addresses: [`${TON}:4711`] },
    { kind: 'reject', addresses: [TROUBLE.rejected], message: 'wallet closed' },
    { kind: 'drop-after', addresses: [TROUBLE.lost] },
    { kind: 'drop-before', platformId: SIGNED, addresses: [`${XRP}:12345`], times: 1 },
    { kind: 'hang', addresses: [TROUBLE.hung] },
  ],
});
const sandboxUrl = sandbox.url;
try {
  await makeAll();
} finally {
  for (const child of children) child.kill('SIGKILL');
  await redis.stop();
  await sandbox.close();
  rmSync(dir, { recursive: true, force: true });
}
