import { chmod } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { keyEntry, testKey } from '../../control/support/keys.js';
import { openWorld, SECRET_KEY, untilSent } from '../../worker/support/payout-world.js';
import { textWith, useCli } from '../support/cli-rig.js';
import { runInProcess } from '../support/in-process.js';

/** Commands that run until they are stopped. A closed terminal sends SIGHUP to what runs in it. */

const cli = useCli();

describe('payouts dashboard', () => {
  beforeEach(() => {
    cli.env['DASHBOARD_PORT'] = '0';
  });

  async function prepareFiles(): Promise<string> {
    const rule = '{ name: most, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: refuse }';
    const policy = `{ version: 1, platformId: "${cli.platformId}", default: send, rules: [${rule}] }`;
    const keysFile = await cli.file('keys.json', JSON.stringify({ version: 1, keys: [keyEntry(testKey(1))] }));
    const files = { PAYOUT_KEYS_FILE: keysFile, PAYOUT_POLICY_FILE: await cli.file('policy.yaml', policy) };
    Object.assign(cli.env, files);
    return keysFile;
  }

  it.each(['SIGINT', 'SIGTERM'] as const)(
    'prints its URL, serves, outlives SIGHUP, and exits cleanly on %s',
    async (signal) => {
      cli.env['DASHBOARD_PASSWORD'] = 'sesame';
      const dashboard = cli.start(['dashboard']);
      const line = /Dashboard on (http:\/\/127\.0\.0\.1:\d+\/)\n/;
      await dashboard.waitForOutput(line);
      dashboard.kill('SIGHUP');
      dashboard.kill(signal);
      const result = await dashboard.result;
      expect(result).toMatchObject({ code: 0, stdout: '', stderr: textWith(line) });
      expect(result.stderr).not.toContain('sesame');
    },
  );

  it('names the variable for which it does not start: no password beyond loopback', async () => {
    cli.env['DASHBOARD_HOST'] = '0.0.0.0';
    const loopback = /^payouts: DASHBOARD_PASSWORD: is required to listen on 0\.0\.0\.0/;
    await cli.refused(2, loopback, 'dashboard');
    delete cli.env['DASHBOARD_HOST'];
    const keysFile = await prepareFiles();
    await cli.file('policy.yaml', 'version: 2');
    await cli.refused(2, /^payouts: PAYOUT_POLICY_FILE: /, 'dashboard');
    await chmod(keysFile, 0o666);
    await cli.refused(2, /^payouts: PAYOUT_KEYS_FILE: /, 'dashboard');
  });
});

describe('payouts notify', () => {
  const env = {
    ...{ GATEWAY_PLATFORM_ID: '7', NOTIFY_URL: 'https://hooks.example/T0/hunter2' },
    ...{ NOTIFY_SECRET: 'hunter2-0123456789', NOTIFY_HEALTH_PORT: '0' },
  };

  it('refuses a wrong setting without showing a secret', async () => {
    for (const [changes, message] of [
      [{ NOTIFY_URL: '' }, 'NOTIFY_URL: is required (or NOTIFY_URL_FILE, a file that holds it)'],
      [{ NOTIFY_SECRET: 'hunter2' }, 'NOTIFY_SECRET: must have at least 16 characters'],
      [{ NOTIFY_EVENTS: 'paid' }, 'NOTIFY_EVENTS: must name events'],
      [{ NOTIFY_FORMAT: 'telegram' }, 'NOTIFY_URL: must end with ?chat_id='],
    ] as [Record<string, string>, string][]) {
      const { code, stderr } = await runInProcess(['notify'], { ...env, ...changes });
      expect({ code, stderr }).toEqual({ code: 2, stderr: textWith(message) });
      expect(stderr).not.toContain('hunter2');
    }
  });
});

describe('payouts worker', () => {
  const accounts = (baseUrl: string, ...platformIds: number[]): string =>
    JSON.stringify(platformIds.map((platformId) => ({ platformId, baseUrl, secretKeyFile: 'key' })));

  it.each([
    ['0', 2, {}, 'must be a whole number from 1 to 64'],
    ['65', 2, {}, 'must be a whole number from 1 to 64'],
    ['2', 1, {}, '--processes: shares accounts out, and there is only one: leave it out, or name several'],
    ['3', 2, {}, '--processes: must be at most the number of accounts, 2'],
    ['2', 2, { HEALTH_PORT: '65535' }, 'HEALTH_PORT: must leave a port for each of 2 processes'],
  ] as const)('--processes %s with %i accounts is refused', async (number, count, environment, words) => {
    await cli.file('key', 'k-processes');
    const file = await cli.file('accounts.json', accounts('http://127.0.0.1:1', ...[1, 2].slice(0, count)));
    Object.assign(cli.env, { PAYOUT_ACCOUNTS_FILE: file, ...environment });
    cli.unset('GATEWAY_PLATFORM_ID');
    await cli.refused(2, words, 'worker', '--processes', number);
  });

  it.each([[[]], [['--processes', '2']]])(
    'without keys loses nothing by a SIGHUP during a request: %j',
    async (args: string[]) => {
      const world = await openWorld();
      await cli.file('key', SECRET_KEY);
      const others = accounts(world.sandbox.url, world.platformId, world.platformId + 1_000_000_000);
      const file = await cli.file('accounts.json', others);
      world.sandbox.addFaults([{ kind: 'latency-after', delayMs: 3_000, times: 1 }]);
      await world.enqueue(1);
      const worker = world.startWorker({ args, environment: args.length > 0 ? { PAYOUT_ACCOUNTS_FILE: file } : {} });
      await untilSent(world, 1);
      worker.kill('SIGHUP');
      expect((await world.producer.waitFor('P-1', { timeoutMs: 20_000 })).state).toBe('completed');
      worker.kill('SIGTERM');
      expect(await worker.ended).toBe(0);
      await world.close();
    },
    60_000,
  );
});
