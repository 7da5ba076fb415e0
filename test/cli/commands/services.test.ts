import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import '../../../src/cli/worker/worker-command.js';
import { startCli } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { startOwnRedis } from '../../worker/support/own-redis.js';
import { openWorld, untilSent } from '../../worker/support/payout-world.js';
import { SECRET_KEY, textWith, useCli } from '../support/cli-rig.js';
import { runInProcess } from '../support/in-process.js';

/** Commands that run until they are stopped, and those that ask the gateway. A closed terminal sends SIGHUP. */

const cli = useCli(true);

it.each(['SIGINT', 'SIGTERM'] as const)('serves, outlives SIGHUP, and exits cleanly on %s', async (signal) => {
  Object.assign(cli.env, { DASHBOARD_PORT: '0', DASHBOARD_PASSWORD: 'sesame' });
  const dashboard = cli.start(['dashboard']);
  const line = /Dashboard on (http:\/\/127\.0\.0\.1:\d+\/)\n/;
  await dashboard.waitForOutput(line);
  dashboard.kill('SIGHUP');
  dashboard.kill(signal);
  const result = await dashboard.result;
  expect(result).toMatchObject({ code: 0, stdout: '', stderr: textWith(line) });
  expect(result.stderr).not.toContain('sesame');
});

it('payouts dashboard redirects and links under PAYOUT_DASHBOARD_PATH, also if a proxy strips it', async () => {
  Object.assign(cli.env, { DASHBOARD_PORT: '0', PAYOUT_DASHBOARD_PATH: '/admin/pay', PAYOUT_ENVIRONMENT: 'staging' });
  const dashboard = cli.start(['dashboard']);
  const [, url = ''] = await dashboard.waitForOutput(/Dashboard on (http:\/\/127\.0\.0\.1:\d+\/admin\/pay\/)\n/);
  for (const asked of [url, new URL('/', url)]) {
    const response = await fetch(asked, { redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, '/admin/pay/overview']);
  }
  const page = await (await fetch(new URL('/overview', url))).text();
  expect(page).toContain('<bdi>staging</bdi>');
  for (const [, link] of page.matchAll(/(?:href|src)="(?!data:|#|")([^"]+)/g)) expect(link).toMatch(/^\/admin\/pay\//);
  dashboard.kill('SIGTERM');
  expect(await dashboard.result).toMatchObject({ code: 0 });
});

it('payouts dashboard names the variable for which it does not start: no password beyond loopback', async () => {
  Object.assign(cli.env, { DASHBOARD_PORT: '0', DASHBOARD_HOST: '0.0.0.0' });
  const loopback = /^payouts: DASHBOARD_PASSWORD: is required to listen on 0\.0\.0\.0/;
  await cli.refused(2, loopback, 'dashboard');
  cli.unset('DASHBOARD_HOST');
  cli.env['PAYOUT_DASHBOARD_PATH'] = 'admin/';
  await cli.refused(2, /^payouts: PAYOUT_DASHBOARD_PATH: must be a path such as \/admin\/payouts/, 'dashboard');
  cli.unset('PAYOUT_DASHBOARD_PATH');
  for (const name of ['PAYOUT_POLICY_FILE', 'PAYOUT_KEYS_FILE']) {
    cli.env[name] = await cli.file('wrong.yaml', 'version: 2');
    await cli.refused(2, new RegExp(`^payouts: ${name}: `), 'dashboard');
  }
});

it.each<[Record<string, string>, string]>([
  [{ NOTIFY_URL: '' }, 'NOTIFY_URL: is required (or NOTIFY_URL_FILE, a file that holds it)'],
  [{ NOTIFY_SECRET: 'hunter2' }, 'NOTIFY_SECRET: must have at least 16 characters'],
  [{ NOTIFY_FORMAT: 'telegram' }, 'NOTIFY_URL: must end with ?chat_id='],
])('payouts notify refuses %j without showing a secret', async (changes, message) => {
  const url = { NOTIFY_URL: 'https://hooks.example/T0/hunter2', NOTIFY_HEALTH_PORT: '0' };
  Object.assign(cli.env, { ...url, NOTIFY_SECRET: 'hunter2-0123456789', ...changes });
  expect(await cli.refused(2, message, 'notify')).not.toContain('hunter2');
});

it.each([
  ['0', 2, {}, 'must be a whole number from 1 to 64'],
  ['65', 2, {}, 'must be a whole number from 1 to 64'],
  ['2', 1, {}, '--processes: shares accounts out, and there is only one: leave it out, or name several'],
  ['3', 2, {}, '--processes: must be at most the number of accounts, 2'],
  ['2', 2, { HEALTH_PORT: '65535' }, 'HEALTH_PORT: must leave a port for each of 2 processes'],
] as const)('--processes %s with %i accounts is refused', async (number, count, environment, words) => {
  await cli.file('key', 'k-processes');
  const about = { baseUrl: 'http://127.0.0.1:1', secretKeyFile: 'key' };
  const accounts = [1, 2].slice(0, count).map((platformId) => ({ platformId, ...about }));
  const file = await cli.file('accounts.json', JSON.stringify(accounts));
  Object.assign(cli.env, { PAYOUT_ACCOUNTS_FILE: file, ...environment });
  cli.unset('GATEWAY_PLATFORM_ID', 'GATEWAY_BASE_URL', 'GATEWAY_SECRET_KEY');
  await cli.refused(2, words, 'worker', '--processes', number);
});

it.each([[[]], [['--processes', '2']]])(
  'without keys loses nothing by a SIGHUP during a request: %j',
  async (args: string[]) => {
    const world = await openWorld();
    const platformIds = [world.platformId, world.platformId + 1_000_000_000];
    const accounts = await world.writeAccounts(platformIds.map((platformId) => ({ platformId })));
    world.sandbox.addFaults([{ kind: 'latency-after', delayMs: 3_000, times: 1 }]);
    await world.enqueue(1);
    const worker = world.startWorker({ args, environment: args.length > 0 ? accounts : {} });
    await untilSent(world, 1);
    worker.kill('SIGHUP');
    expect((await world.producer.waitFor('P-1', { timeoutMs: 20_000 })).state).toBe('completed');
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
    await world.close();
  },
  60_000,
);

it('a worker outlives a SIGHUP while it waits for Redis, and pays once Redis is there', async () => {
  const redis = await startOwnRedis();
  await redis.stop();
  const world = await openWorld({ redis });
  const worker = world.startWorker();
  await until('it waits for Redis', () => worker.log().includes('waiting for Redis'));
  worker.kill('SIGHUP');
  await redis.startAgain();
  await world.enqueue(1);
  expect((await world.producer.waitFor('P-1', { timeoutMs: 20_000 })).state).toBe('completed');
  worker.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
  await world.close();
  await redis.close();
}, 60_000);

it('payouts gateway shows balance, currencies and the address for deposits, in both forms', async () => {
  expect(await cli.ok('gateway', 'balance')).toBe('1000.5\n');
  expect(await cli.json('gateway', 'balance')).toEqual({ balance: '1000.5' });
  expect(await cli.ok('gateway', 'currencies')).toMatch(
    /^PAYMENT_ID +CURRENCY +NAME +NETWORK +RATE_USD\n1 +BTC +Bitcoin +Bitcoin +64250\.5\n/,
  );
  const wallet = ['gateway', 'wallet', '--payment-id', '4', '--order-id', 'deposit-17'];
  const { address, destinationTag, ...rest } = await cli.json(...wallet);
  expect([rest, address, destinationTag]).toEqual([
    { paymentId: 4, orderId: 'deposit-17' },
    expect.any(String),
    textWith(/^\d+$/),
  ]);
});

it('payouts gateway shows any structure that the gateway returns', async () => {
  // Another structure than the sandbox's: docs/gateway-api-v1.md#open-points.
  const responses: Readonly<Record<string, string>> = {
    '/balance': '{"result":1,"balance":{"USD":12345678901234567890.5,"note":"a\\u001b[31mb"}}',
    '/currencies': '{"result":1,"list":[{"id":1,"x":{"y":2}},{"id":2,"more":null}]}',
  };
  const server = createServer((request, response) => response.end(responses[request.url ?? ''] ?? '{}'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  cli.env['GATEWAY_BASE_URL'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await cli.ok('gateway', 'balance')).toBe('USD   12345678901234567890.5\nnote  a [31mb\n');
  expect(await cli.ok('gateway', 'currencies')).toBe('ID  X        MORE\n1   {"y":2}\n2\n');
  server.close();
});

it('payouts gateway exits 2 for invalid input and 1 for a refusal or no gateway', async () => {
  const wallet = ['gateway', 'wallet', '--payment-id'];
  const both = /--payment-id: must be a whole number.*got "x".*\n.*--order-id: must be 1 to 64/;
  await cli.refused(2, both, ...wallet, 'x', '--order-id', 'a b');
  await cli.refused(1, /refused \/transactionstatus: unknown txhash\n/, 'gateway', 'status', 'abc');
  cli.env['GATEWAY_SECRET_KEY'] = `${SECRET_KEY}x`;
  const wrongKey = await cli.refused(1, /refused \/balance: wrong signature/, 'gateway', 'balance');
  cli.env['GATEWAY_BASE_URL'] = 'http://127.0.0.1:1';
  const unavailable = await cli.refused(1, '', 'gateway', 'balance');
  expect(wrongKey + unavailable).not.toContain(SECRET_KEY);
});

describe('payouts sandbox', () => {
  const env = { GATEWAY_PLATFORM_ID: '7', GATEWAY_SECRET_KEY: 'hidden-in-the-environment' };

  it('takes accounts and faults, warns beyond loopback, shows no secret', async () => {
    const sandbox = startCli(
      [
        ...['sandbox', '--port', '0', '--host', '0.0.0.0', '--account', '2:hidden', '--balance', '50'],
        ...['--fault', 'reject:address=a:1,address=b,message=no = no'],
        ...['--v2', 'failedStatusCode=200', '--v2', 'refusesRepeatedOrderId=true'],
      ],
      { env },
    );
    // The last line: by then the signal handlers are set and everything has been printed.
    const [, url = ''] = await sandbox.waitForOutput(/Statistics: (\S+)\/__sandbox\/stats\n/);
    const stats: unknown = await (await fetch(`${url}/__sandbox/stats?platformId=2`)).json();
    const faults: unknown = await (await fetch(`${url}/__sandbox/faults`)).json();
    const headers = { 'content-type': 'application/json' };
    const unsigned = { method: 'POST', headers, body: '{"platformId":2}' };
    const failed = await fetch(`${url}/v2/withdrawstatus`, unsigned);
    sandbox.kill('SIGTERM');
    const { code, stdout, stderr } = await sandbox.result;
    // 400 without the switch.
    expect([failed.status, await failed.json()]).toEqual([200, { result: 0, message: 'wrong signature' }]);
    expect([code, stats]).toEqual([0, expect.objectContaining({ balance: '50' })]);
    const fault = { kind: 'reject', endpoint: 'withdraw', addresses: ['a:1', 'b'], message: 'no = no', fired: 0 };
    expect(faults).toEqual({ faults: [fault] });
    expect(stdout + stderr).toMatch(/WARNING: listening on 0\.0\.0\.0/);
    expect(stdout + stderr).not.toContain('hidden');
  });

  it('refuses options that make no sense, without showing a secret', async () => {
    for (const [option, message] of [
      ['--account hidden', '--account: must be ID:SECRET'],
      ['--latency-before 9-3', '--latency-before: must be milliseconds'],
      ['--v2 orderIds', '--v2: must be POINT=VALUE, such as orderIds=ignored (got "orderIds")'],
      ['--v2 orderIds=maybe', '--v2: orderIds '],
      ['--v2 colour=red', 'colour'],
      ['--fault hang:twice', '--fault: "twice" is not a known condition'],
    ] as const) {
      const { code, stdout, stderr } = await runInProcess(['sandbox', ...option.split(' ')], env);
      expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: textWith(message) });
      expect(stderr).not.toContain('hidden');
    }
  });
});
