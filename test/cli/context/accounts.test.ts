import { basename, join } from 'node:path';
import { chmod } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { readPlatformIds, readWorkerAccounts } from '../../../src/cli/context/accounts.js';
import { confirm, type Terminal } from '../../../src/cli/context/confirm.js';
import { startSandbox } from '../../../src/sandbox/index.js';
import { useCli } from '../support/cli-rig.js';

const cli = useCli();
const BASE_URL = 'https://gateway.example';
let ids: [number, number];
beforeEach(() => {
  ids = [cli.platformId, cli.platformId + 1];
});

/** The only setting is an accounts file of these. */
async function useAccounts(platformIds: readonly number[], baseUrl = BASE_URL) {
  for (const id of platformIds) await cli.file(`${id}.txt`, `secret-${id}`);
  const accounts = platformIds.map((platformId) => ({ platformId, baseUrl, secretKeyFile: `${platformId}.txt` }));
  delete cli.env['GATEWAY_PLATFORM_ID'];
  cli.env['PAYOUT_ACCOUNTS_FILE'] = await cli.file('accounts.json', JSON.stringify(accounts));
}

it('a command with an accounts file only takes the one account that there is, and asks its gateway with its secret', async () => {
  const [one] = ids;
  const sandbox = await startSandbox({ accounts: [{ platformId: one, secretKey: `secret-${one}` }] });
  await useAccounts([one], sandbox.url);
  expect(await cli.json('stats')).toMatchObject({ platformId: one });
  await cli.ok('gateway', 'balance');
  await sandbox.close();
});

it('a command with an accounts file only asks which of several, keeps to the one that is chosen', async () => {
  await useAccounts(ids);
  const [one, two] = ids.map(String) as [string, string];
  const required = `payouts: --account: is required: PAYOUT_ACCOUNTS_FILE has the accounts ${one}, ${two}\n`;
  await cli.refused(2, required, 'pause', '--reason', 'holiday');
  const rows = await cli.file('rows.csv', 'payout_id,payment_id,amount,address_to', 'p-1,6,1,T');
  await cli.ok('import', rows, '--dry-run');
  expect(await cli.enqueue('only-two', '--account', two)).toMatchObject({ code: 0 });
  await cli.refused(3, 'only-two', 'get', 'only-two', '--account', one);
  const unknown = `payouts: --account: is not in PAYOUT_ACCOUNTS_FILE, which has ${one}, ${two} (got "5")\n`;
  await cli.refused(2, unknown, 'stats', '--account', '5');
  await cli.refused(2, /--account: must be a whole number/, 'stats', '--account', 'five');
  cli.env['GATEWAY_PLATFORM_ID'] = two;
  await cli.ok('get', 'only-two');
});

it('--account without an accounts file names the account', async () => {
  const [one, two] = ids.map(String) as [string, string];
  const other = `payouts: --account: is not the account of GATEWAY_PLATFORM_ID, which is ${one} (got "${two}")\n`;
  await cli.refused(2, other, 'stats', '--account', two);
  delete cli.env['GATEWAY_PLATFORM_ID'];
  expect(await cli.json('stats', '--account', one)).toMatchObject({ platformId: ids[0] });
});

describe('the accounts file of a worker', () => {
  beforeEach(async () => {
    await cli.file('one.key', 'k-one-0123456789');
    await cli.file('two.key', 'k-two-0123456789');
    await chmod(await cli.file('open.key', 'k-open-0123456789'), 0o644);
  });
  const ONE = { platformId: 1, baseUrl: BASE_URL, secretKeyFile: 'one.key' };
  const TWO = { platformId: 2, baseUrl: `${BASE_URL}/`, secretKeyFile: 'two.key' };

  async function read(accounts: unknown, environment: Record<string, string> = {}): Promise<unknown> {
    const file = await cli.file('file.json', typeof accounts === 'string' ? accounts : JSON.stringify(accounts));
    return readWorkerAccounts({ PAYOUT_ACCOUNTS_FILE: file, ...environment });
  }

  it('gives each account its own settings and its policy', async () => {
    const one = { ...ONE, intervalMs: 2_000, policyFile: 'one/policy.yaml' };
    const two = { ...TWO, secretKeyFile: join(cli.dir, 'two.key'), retentionDays: 30 };
    const environment = { WITHDRAW_INTERVAL_MS: '1500', LEASE_MS: '5000', PAYOUT_POLICY_FILE: 'all.yaml' };
    expect(await read([one, two], environment)).toMatchObject([
      {
        ...{ platformId: 1, baseUrl: BASE_URL, secretKey: 'k-one-0123456789', intervalMs: 2_000, leaseMs: 5_000 },
        policyFile: join(cli.dir, 'one/policy.yaml'),
      },
      {
        ...{ platformId: 2, baseUrl: BASE_URL, secretKey: 'k-two-0123456789', intervalMs: 1_500, retentionDays: 30 },
        policyFile: 'all.yaml',
      },
    ]);
  });

  it('names the accounts without their secrets, and is not needed for one', async () => {
    const file = await cli.file('file.json', JSON.stringify([{ ...ONE, secretKeyFile: 'none.key' }, TWO]));
    expect(readPlatformIds({ PAYOUT_ACCOUNTS_FILE: file })).toEqual([1, 2]);
    expect(() => readPlatformIds({})).toThrow('GATEWAY_PLATFORM_ID: is required');
    const environment = { GATEWAY_PLATFORM_ID: '5', GATEWAY_BASE_URL: BASE_URL, GATEWAY_SECRET_KEY: 'k-five' };
    expect(await readWorkerAccounts(environment)).toMatchObject([
      { platformId: 5, secretKey: 'k-five', intervalMs: 1_010 },
    ]);
  });

  it('is refused without accounts, keys, or with an interval under a second', async () => {
    for (const [accounts, message] of [
      [[], 'PAYOUT_ACCOUNTS_FILE: must name at least one account'],
      [[ONE, ONE], 'must name each platformId once'],
      [[{ ...ONE, intervalMs: 999 }], 'PAYOUT_ACCOUNTS_FILE 0.intervalMs: must be a whole number from 1000'],
      [[{ ...ONE, secretKeyFile: 'open.key' }], 'secretKeyFile of account 1: is open to every user of this machine'],
      ['[{', 'PAYOUT_ACCOUNTS_FILE: cannot be used: '],
      [JSON.stringify([ONE]).replace('{', '{"platformId":2,'), 'has "platformId" twice: give it once'],
    ] as [unknown, string][])
      await expect(read(accounts)).rejects.toThrow(message);
  });

  it.each([0o666, 0o662])('is refused when others may write it: mode %o', async (mode) => {
    const file = await cli.file('file.json', JSON.stringify([ONE]));
    const readIt = async () => readWorkerAccounts({ PAYOUT_ACCOUNTS_FILE: file });
    await expect(readIt()).resolves.toBeDefined();
    await chmod(file, mode);
    await expect(readIt()).rejects.toThrow(/^PAYOUT_ACCOUNTS_FILE: cannot be used: .*file\.json/);
  });

  it('keeps a key that was written into the file by mistake out of the error', async () => {
    const error = await read([{ platformId: 1, baseUrl: BASE_URL, secretKey: 'k-by-mistake' }]).catch(String);
    expect(error).toMatch(/^(?!.*k-by-mistake).*secretKey: is not a known field/s);
    for (const text of [
      '[{"secretKey":"k-by-mistake",}]',
      '[{"secretKey":k-by-mistake}]',
      '[{"secretKey":"k-by-mistake"',
    ]) {
      expect(await read(text).catch(String)).toMatch(/^(?!.*k-by).*is not JSON/s);
    }
  });
});

function openTerminal() {
  const [input, output] = [new PassThrough(), new PassThrough()].map((stream) =>
    Object.assign(stream, { isTTY: true }),
  );
  return { input, output } as { input: Terminal['input'] & PassThrough; output: Terminal['output'] & PassThrough };
}

it('confirm continues after a yes alone, not at the end of the input, and stops when the command is ended', async () => {
  for (const answer of ['y', ' yes ', '', 'n', 'yesterday', undefined]) {
    const asked = openTerminal();
    if (answer === undefined) asked.input.end();
    else asked.input.write(`${answer}\n`);
    const confirmed = confirm('Continue?', asked).then(() => 'yes', String);
    const isYes = answer === 'y' || answer === ' yes ';
    expect([answer, await confirmed]).toEqual([answer, isYes ? 'yes' : expect.stringMatching(/Stopped|Nothing/)]);
  }
  const stop = new AbortController();
  const confirmed = confirm('Continue?', openTerminal(), stop.signal);
  stop.abort();
  await expect(confirmed).rejects.toMatchObject({ code: 'STOPPED' });
});

describe('a gateway of your own', () => {
  const GATEWAY = `export default {
    id: 'acme',
    capabilities: { minWithdrawGapMs: 1000 },
    openConnection: async () => { throw new Error('no'); },
    probe: async () => undefined,
    classifyStop: () => ({ isOfPayout: false }),
    getStatus: async (id) => ({ kind: 'paid', txhash: '0x' + id, amount: '1' }),
    comparePayment: () => [],
    readCurrencies: async () => ({ currencies: [], isWhole: true, given: [] }),
    readBalances: async () => ({ balances: [], given: 'nothing' }),
    close: () => undefined,
  };`;
  // A module is loaded once by its name.
  let number = 0;
  const write = async (text = GATEWAY) => cli.file(`gateway-${(number += 1)}.mjs`, text);
  const read = async (gateway: string, changes: object = {}) => {
    const text = JSON.stringify([{ platformId: 7, gateway, ...changes }]);
    return readWorkerAccounts({ PAYOUT_ACCOUNTS_FILE: await cli.file('own.json', text) });
  };

  it('is a module beside the accounts file, or of GATEWAY_FILE, in place of address and key', async () => {
    const name = basename(await write());
    expect(await read(name, { intervalMs: 2_000 })).toMatchObject([
      { platformId: 7, intervalMs: 2_000, gateway: { id: 'acme' } },
    ]);
    const environment = { GATEWAY_PLATFORM_ID: '7', GATEWAY_FILE: join(cli.dir, name) };
    expect(await readWorkerAccounts(environment)).toMatchObject([{ platformId: 7, gateway: { id: 'acme' } }]);
    await expect(readWorkerAccounts({ ...environment, GATEWAY_BASE_URL: BASE_URL })).rejects.toThrow(
      'GATEWAY_FILE: must not be set beside GATEWAY_BASE_URL',
    );
    const both = 'PAYOUT_ACCOUNTS_FILE 0.baseUrl: must be absent, because gateway is set';
    await expect(read(name, { baseUrl: BASE_URL })).rejects.toThrow(both);
  });

  it('is asked by the commands of its account', async () => {
    cli.env['GATEWAY_FILE'] = await write();
    expect(await cli.json('gateway', 'status', '4711')).toMatchObject({
      gatewayId: '4711',
      txhash: '0x4711',
      approve: 1,
    });
    delete cli.env['GATEWAY_FILE'];
    const [one] = ids;
    const accounts = JSON.stringify([{ platformId: one, gateway: basename(await write()) }]);
    delete cli.env['GATEWAY_PLATFORM_ID'];
    cli.env['PAYOUT_ACCOUNTS_FILE'] = await cli.file('accounts.json', accounts);
    expect(await cli.ok('gateway', 'status', '12')).toMatch(/gateway id +12\n.*txhash +0x12\n/);
  });

  it.each([0o666, 0o646, 0o662])('is refused when others may write it: mode %o', async (mode) => {
    const file = await write();
    await chmod(file, mode);
    await expect(read(file)).rejects.toThrow(/^gateway of account 7: .*gateway-\d+\.mjs is /);
  });

  it('is refused in a folder that others may write', async () => {
    const file = await write();
    await chmod(cli.dir, 0o777);
    await expect(read(file)).rejects.toThrow(/accounts|gateway|others/);
    await chmod(cli.dir, 0o700);
    expect(await read(file)).toHaveLength(1);
  });

  it.each([
    ['a module that throws', 'throw new Error("boom")', 'cannot be loaded: boom'],
    ['no default export', 'export const gateway = 1', 'must be an object of the interface OwnGateway (got undefined)'],
    ['a missing method', GATEWAY.replace('probe:', 'probes:'), 'probe must be a function (got undefined)'],
    ['a wrong capability', GATEWAY.replace('1000', '-1'), 'minWithdrawGapMs must be a whole number of ms from 1 to'],
  ])('%s is refused by its name', async (_, text, message) => {
    await expect(read(await write(text))).rejects.toThrow(message);
  });
});
