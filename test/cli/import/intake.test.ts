import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ENDPOINTS } from '../../../src/gateway/endpoints.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { openAccountCli, type AccountCli } from '../support/account-cli.js';

/** What is refused on every way in, and what `payouts import` reads as it is meant. */

let account: AccountCli;
let dir: string;

beforeEach(async () => {
  account = openAccountCli();
  dir = await mkdtemp(join(tmpdir(), 'intake-'));
  const { redis, keys } = account.ledger.connection;
  const currencies = [{ paymentId: 6, name: 'USDT (TRC-20)' }];
  await redis.hset(keys.gateway, 'currencies', JSON.stringify({ currencies }));
});

afterEach(async () => {
  await account.close();
  await rm(dir, { recursive: true });
});

async function write(name: string, ...lines: string[]): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, `${lines.join('\n')}\n`);
  return path;
}

const HEADER = 'payout_id,payment_id,amount,address_to,destination_tag';
const TRON = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const RAW_TON = '0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e';
const CASH = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const WRONG = 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdr';
const PROBLEM = 'is a bech32 address whose checksum is wrong';

describe('an address with a wrong checksum', () => {
  it('is an error of its row, also of a dry run', async () => {
    const file = await write(
      'a.csv',
      HEADER,
      `p-1,6,1,${TRON},`,
      `p-2,1,1,${WRONG},`,
      `p-3,6,1,${TRON.slice(0, -1)}g,`,
    );
    for (const flags of [['--dry-run'], ['--yes']]) {
      const { code, stderr } = await account.run('import', file, ...flags);
      expect(code).toBe(2);
      expect(stderr).toContain(
        `line 3: address_to: ${PROBLEM}: copy it again from where it comes from (got "${WRONG}")`,
      );
      expect(stderr).toMatch(/line 4: address_to: is no address of USDT \(TRC-20\), because its checksum/);
    }
    expect(await account.ledger.get('p-1')).toBeUndefined();
    Object.assign(account.env, { PAYOUT_CHECK_ADDRESSES: 'false' });
    expect(await account.run('import', file, '--yes')).toMatchObject({ code: 0 });
    expect(await account.ledger.get('p-2')).toMatchObject({ addressTo: WRONG });
  });

  it('is refused by `enqueue`, unless the setting turns that off', async () => {
    const flags = ['enqueue', '--payout-id', 'p-1', '--payment-id', '1', '--amount', '1', '--address-to', WRONG];
    const refused = await account.run(...flags);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(`--address-to: ${PROBLEM}`) });
    Object.assign(account.env, { PAYOUT_CHECK_ADDRESSES: 'false' });
    expect(await account.run(...flags)).toMatchObject({ code: 0 });
  });

  it('is refused by the producer, of one payout and of many, and by the currency that the worker told', async () => {
    const { redis: connection, platformId } = account.ledger.connection;
    const open = (checkAddresses?: boolean) => new PayoutProducer({ connection, platformId, checkAddresses });
    const of = (payoutId: string, addressTo: string) => ({ payoutId, paymentId: 6, amount: '1', addressTo });
    const [tron, wrongTron] = [of('tron', TRON), of('wrong', `${TRON.slice(0, -1)}g`)];
    const producer = open();
    await expect(producer.enqueue(of('p', WRONG))).rejects.toThrow(`addressTo: ${PROBLEM}`);
    await expect(producer.enqueue(wrongTron)).rejects.toThrow('is no address of USDT (TRC-20)');
    await expect(producer.enqueueMany([tron, of('p', WRONG)])).rejects.toThrow(`[1].addressTo: ${PROBLEM}`);
    await expect(producer.enqueueMany([tron, wrongTron])).rejects.toThrow('[1].addressTo: is no address of USDT');
    expect(await producer.get('tron')).toBeUndefined();
    expect(await producer.enqueue(tron)).toMatchObject({ created: true });
    await producer.close();
    const trusting = open(false);
    expect(await trusting.enqueueMany([wrongTron, of('p', WRONG)])).toMatchObject({ created: 2 });
    await trusting.close();
  });

  it('that an earlier version accepted is still read, and may be sent', async () => {
    await account.ledger.enqueue([{ ...aPayout('old'), paymentId: 5, addressTo: `${RAW_TON}:nan` }]);
    expect(await account.run('get', 'old', '--json')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(RAW_TON),
    });
    const request = { paymentId: 5, amount: '1', addressTo: `${RAW_TON}:nan` };
    expect(ENDPOINTS.withdraw.request.safeParse(request).success).toBe(true);
  });
});

describe('a payment id that the gateway does not list', () => {
  const CELLS = [HEADER, `old,7,1,${TRON},`, `p-1,6,1,${TRON},`, `p-2,7,1,${TRON},`, `p-2,7,1,${TRON},`];

  beforeEach(async () => {
    const { connection } = account.ledger;
    const currencies = [{ paymentId: 6, name: 'USDT (TRC-20)', usdRate: undefined }];
    await account.ledger.enqueue([aPayout('old', { amount: '1', addressTo: TRON })]);
    await writeGatewayFacts(connection, { currencies, currenciesAt: Date.now(), isWhole: true });
  });

  it('is an error of its row, also of a dry run, but not of a payout that exists', async () => {
    const file = await write('ids.csv', ...CELLS);
    for (const flags of [['--dry-run'], ['--yes']]) {
      const { code, stderr } = await account.run('import', file, ...flags);
      expect(code).toBe(2);
      expect(stderr).toMatch(/line 4: payment_id: must be in the gateway's list of .*: 6 USDT \(TRC-20\) \(got 7\)/);
      expect(stderr).not.toContain('line 2');
    }
    expect(await account.ledger.get('p-1')).toBeUndefined();
    const skipping = await account.run('import', file, '--yes', '--skip-invalid', '--json');
    expect(skipping.code).toBe(0);
    expect(JSON.parse(skipping.stdout)).toMatchObject({ payouts: 2, invalid: 1, created: 1, existing: 1 });
  });

  it('is refused by `enqueue`, unless the setting turns that off', async () => {
    const flags = ['enqueue', '--payout-id', 'p-3', '--payment-id', '7', '--amount', '1', '--address-to', TRON];
    const refused = await account.run(...flags);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--payment-id: must be in the gateway') });
    Object.assign(account.env, { PAYOUT_CHECK_PAYMENT_IDS: 'false' });
    expect(await account.run(...flags)).toMatchObject({ code: 0 });
    expect(await account.run('import', await write('ids.csv', ...CELLS), '--yes')).toMatchObject({ code: 0 });
  });
});

describe('a column destination_tag', () => {
  it('beside an address with a colon of its own is no second tag', async () => {
    const file = await write('tags.csv', HEADER, `p-1,5,1,${RAW_TON},`, `p-2,5,1,${RAW_TON},77`, `p-3,11,1,${CASH},77`);
    const { stderr } = await account.run('import', file, '--dry-run');
    expect(stderr).not.toContain('given twice');
    expect(stderr).toMatch(/line 2: .*write "UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA"/);
    expect(stderr).toMatch(/line 3: .*write "UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA:77"/);
    expect(stderr).toMatch(/line 4: address_to: has a destination tag, which its network does not have/);
    const twice = await write('twice.csv', HEADER, 'p-1,4,1,r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59:7,8');
    expect((await account.run('import', twice, '--dry-run')).stderr).toMatch(/destination_tag: is given twice/);
  });

  it.each([
    '1.23457E+12',
    '123456.0',
    'nan',
    'None',
    '#N/A',
    '-1',
    '"123,456"',
    'undefined',
    '12\u200b3',
    '\uff11\uff12',
  ])('with %s is an error of its row', async (tag) => {
    const file = await write('tag.csv', HEADER, `p-1,4,1,r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59,${tag}`);
    const { code, stderr } = await account.run('import', file, '--dry-run');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^line 2: address_to: (has a destination tag|contains an invisible)/m);
  });
});

describe('JSON lines', () => {
  it.each([
    ['amount', '{"payoutId":"p","paymentId":6,"amount":"0.1","amount":"100","addressTo":"T"}'],
    ['amount', '{"payoutId":"p","paymentId":6,"amount":"0.1","amount":"0.1","addressTo":"T"}'],
    ['amount', '{"payoutId":"p","paymentId":6,"amount":"0.1","am\\u006funt":"100","addressTo":"T"}'],
    ['id', '{"payoutId":"p","paymentId":6,"amount":"0.1","addressTo":"T","metadata":[{"id":1},{"id":1,"id":2}]}'],
  ])('with %s twice in one object are an error of their row: %s', async (key, row) => {
    const other = '{"payoutId":"q","paymentId":6,"amount":"1","addressTo":"T","metadata":{"a":{"a":"\\"a\\":{"}}}';
    const { code, stderr } = await account.run('import', await write('twice.jsonl', other, row), '--dry-run');
    expect(code).toBe(2);
    expect(stderr).toContain(`line 2: row: has "${key}" twice: give it once\n`);
    expect(stderr).not.toContain('line 1');
  });

  it('have no field that another one brings along', async () => {
    const row = '{"payoutId":"p","paymentId":6,"addressTo":"T","__proto__":{"amount":"100"}}';
    const { code, stderr } = await account.run('import', await write('proto.jsonl', row), '--dry-run');
    expect(code).toBe(2);
    expect(stderr).toContain('line 1: __proto__: is not a known field\n');
  });

  it('with two spellings of a field name both', async () => {
    const file = await write(
      'both.jsonl',
      '{"payout_id":"b","payoutId":"a","paymentId":6,"amount":"1","addressTo":"T"}',
      '{"payoutId":"a","payout_id":"b","paymentId":6,"amount":"1","addressTo":"T"}',
    );
    const { stderr } = await account.run('import', file, '--dry-run');
    expect(stderr).toMatch(/line 1: payoutId: is the same field as payout_id: give one/);
    expect(stderr).toMatch(/line 2: payout_id: is the same field as payoutId: give one/);
  });
});

describe('CSV with semicolons', () => {
  const semicolons = (line: string): string => line.replaceAll(',', ';');

  it('is read where its first line has them, or --delimiter says so', async () => {
    const rows = ['', semicolons(HEADER), 'p-1;6;12.5;"TX;1";', 'p-2;6;1;T,2;'];
    const file = await write('semicolons.csv', ...rows);
    for (const flags of [[], ['--delimiter', ';']]) {
      const { code } = await account.run('import', file, '--yes', ...flags);
      expect(code).toBe(0);
    }
    expect(await account.ledger.get('p-1')).toMatchObject({ addressTo: 'TX;1', amount: '12.5' });
    expect(await account.ledger.get('p-2')).toMatchObject({ addressTo: 'T,2' });
    const asCommas = await account.run('import', file, '--dry-run', '--delimiter', ',');
    expect(asCommas).toMatchObject({ code: 2, stderr: expect.stringMatching(/payout_id: is missing/) });
  });

  it.each(['12,5', '1.234,56', '1,000', '1,234,567'])('never guesses what the comma of %s means', async (amount) => {
    const file = await write('commas.csv', semicolons(HEADER), `p-1;6;${amount};T;`);
    const { code, stderr } = await account.run('import', file, '--dry-run');
    expect(code).toBe(2);
    expect(stderr).toMatch(/line 2: amount: has a comma, which may stand before decimals or between thousands/);
    expect(stderr).toContain(`(got "${amount}")`);
  });
});
