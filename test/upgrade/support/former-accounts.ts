import { chmod, cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { startLocalRedis } from '../../../src/sandbox/local-redis.js';
import { startSandbox } from '../../../src/sandbox/index.js';
import { createFakeClock } from '../../doubles/fake-clock.js';
import { runInProcess } from '../../cli/support/in-process.js';
import { runCli, startCli, type CliResult, type RunningCli } from '../../support/cli.js';
import { until } from '../../support/until.js';

/**
 * Two accounts as a worker of the version before wallets left them, in Redis and on the disk. The script that made them
 * ran that version's programs: `git log --diff-filter=D -- test/upgrade/make-fixture.ts` finds it.
 */
const FIXTURE = fileURLToPath(new URL('../fixtures/before-wallets', import.meta.url));
const SECRET = 'k-fixture-0123456789';
const MINUTE_MS = 60_000;
const WEEK_MS = 7 * 24 * 60 * MINUTE_MS;

/** The accounts of the fixture: one without keys, one with keys and a policy. */
export const PLAIN = 4242;
export const SIGNED = 4343;

type FormerPayment = Readonly<
  Record<'addressTo' | 'amount' | 'fee', string> & Record<'paymentId' | 'settlesAs', number>
>;

/** The command that writes a key as the fixture has it: a sorted set has member, score, … */
const WRITES = {
  hash: async (redis: Redis, key: string, hash: Record<string, string>) => redis.hset(key, hash),
  string: async (redis: Redis, key: string, text: string) => redis.set(key, text),
  set: async (redis: Redis, key: string, members: string[]) => redis.sadd(key, ...members),
  list: async (redis: Redis, key: string, items: string[]) => redis.rpush(key, ...items),
  zset: async (redis: Redis, key: string, members: string[]) =>
    redis.zadd(
      key,
      ...members.flatMap((_, index) => (index % 2 === 0 ? [members[index + 1] ?? '', members[index] ?? ''] : [])),
    ),
  stream: async (redis: Redis, key: string, entries: [id: string, fields: string[]][]) => {
    for (const [id, fields] of entries) await redis.xadd(key, id, ...fields);
  },
};

export type FormerAccounts = Awaited<ReturnType<typeof openFormerAccounts>>;

/**
 * Opens copies of what is in `fixtures`.
 * @param spell - how the gateway writes a former payment's address now
 * @param atItsTime - processes live in the minutes after the fixture was made: signatures and approvals have not expired
 */
export async function openFormerAccounts({ spell = (address: string) => address, atItsTime = false } = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-upgrade-'));
  await cp(FIXTURE, dir, { recursive: true });
  // Git keeps no modes, and keys that others can read are refused.
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600);
  }
  const { at, ...known } = JSON.parse(await readFile(join(dir, 'gateway.json'), 'utf8')) as Record<string, never>;
  const payments = new Map<string, FormerPayment>(Object.entries(known));
  let clock: Readonly<Record<string, string>> = {};
  if (atItsTime) {
    const fake = await createFakeClock(dir, 'clock');
    await fake.set(Date.parse(String(at)) + MINUTE_MS - Date.now());
    clock = fake.environment;
  }
  const server = await startLocalRedis({ environment: { PATH: process.env['PATH'] ?? '', ...clock } });
  const redis = new Redis(server.url);
  const keys = JSON.parse(await readFile(join(dir, 'redis.json'), 'utf8')) as Record<string, Record<string, never>>;
  for (const [key, content] of Object.entries(keys)) {
    for (const [type, value] of Object.entries(content)) await WRITES[type as keyof typeof WRITES](redis, key, value);
  }
  const sandbox = await startSandbox({
    accounts: [PLAIN, SIGNED].map((platformId) => ({ platformId, secretKey: SECRET })),
    settleAfterMs: 300,
  });
  const gateway = createServer((incoming, response) => {
    void answer(incoming, response);
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));

  async function answer(incoming: IncomingMessage, response: ServerResponse) {
    const body = Buffer.concat((await incoming.toArray()) as Buffer[]);
    const txhash = new URLSearchParams(body.toString()).get('txhash') ?? '';
    const payment = payments.get(txhash);
    if (payment === undefined || incoming.url !== '/transactionstatus') {
      const { method, headers } = incoming;
      request(`${sandbox.url}${incoming.url ?? ''}`, { method, headers }, (forwarded) => {
        response.writeHead(forwarded.statusCode ?? 500, forwarded.headers);
        forwarded.pipe(response);
      }).end(body);
      return;
    }
    const { paymentId, addressTo, amount, fee, settlesAs } = payment;
    const said = { result: 1, approve: settlesAs, payment_id: paymentId, address_to: spell(addressTo), amount, fee };
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...said, txhash }));
  }

  const control = join(dir, 'control');
  const env = (platformId: number): Record<string, string> => ({
    ...{ REDIS_URL: server.url, GATEWAY_PLATFORM_ID: String(platformId), GATEWAY_SECRET_KEY: SECRET },
    GATEWAY_BASE_URL: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
    ...{ SEND_JOURNAL_DIR: join(dir, 'journal'), PAYOUT_ARCHIVE_DIR: join(dir, 'archive') },
    ...{ LEASE_MS: '1000', TAKEOVER_QUARANTINE_MS: '500', IN_FLIGHT_MAX_MS: '1000' },
    ...{ STATUS_POLL_MIN_MS: '200', STATUS_POLL_MAX_MS: '1000' },
    ...(platformId === SIGNED && {
      PAYOUT_KEYS_FILE: join(control, 'keys.yaml'),
      PAYOUT_POLICY_FILE: join(control, 'policy.yaml'),
      ...{ PAYOUT_WORKER_KEY_FILE: join(control, 'worker-1.pem'), PAYOUT_WORKER_KEY_NAME: 'worker-1' },
      ...{ PAYOUT_SIGNING_KEY_FILE: join(control, 'shop.pem'), PAYOUT_SIGNING_KEY_NAME: 'shop' },
      // The former version signed for no environment.
      PAYOUT_ACCEPT_UNBOUND_UNTIL: new Date(Date.parse(String(at)) + WEEK_MS).toISOString(),
    }),
    ...clock,
  });
  const workers: RunningCli[] = [];
  const run = async (
    platformId: number,
    args: readonly string[],
    codes: readonly number[] = [0],
  ): Promise<CliResult> => {
    // A process of its own where another time counts.
    const result = await (atItsTime ? runCli(args, { env: env(platformId) }) : runInProcess(args, env(platformId)));
    if (result.code !== null && codes.includes(result.code)) return result;
    throw new Error(`payouts ${args.join(' ')} ended with ${String(result.code)}:\n${result.stdout}${result.stderr}`);
  };
  const read = async <T>(platformId: number, ...args: string[]): Promise<T> =>
    JSON.parse((await run(platformId, [...args, '--json'])).stdout) as T;
  const stateOf = async (platformId: number, payoutId: string) =>
    (await redis.hget(`{payouts:${platformId}}:payout:${payoutId}`, 'state')) ?? 'none';
  return {
    ...{ redis, sandbox, payments, control, run, read },
    startWorker(platformId: number): RunningCli {
      const worker = startCli(['worker'], { env: { ...env(platformId), HEALTH_PORT: '0' } });
      workers.push(worker);
      return worker;
    },
    async untilStates(platformId: number, states: Readonly<Record<string, string>>) {
      for (const [payoutId, state] of Object.entries(states)) {
        let last = '';
        await until(
          () => `${payoutId} is ${state}, and not ${last}`,
          async () => (last = await stateOf(platformId, payoutId)) === state,
        );
      }
    },
    async close() {
      for (const worker of workers) worker.kill('SIGKILL');
      await Promise.all(workers.map(async ({ result }) => result));
      redis.disconnect();
      gateway.close();
      gateway.closeAllConnections();
      await sandbox.close();
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
