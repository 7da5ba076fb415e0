import { beforeEach, describe, expect, it } from '@jest/globals';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { ENDPOINTS } from '../../../src/gateway/endpoints.js';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { textWith, useCli } from '../support/cli-rig.js';

/** `payouts enqueue`, and what every way in refuses. */

const cli = useCli();
const HEADER = 'payout_id,payment_id,amount,address_to,destination_tag';
const TRON = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const RAW_TON = '0:ca6e321c7cce9ecedf0a8ca2492ec8592494aa5fb5ce0387dff96ef6af982a3e';
const CASH = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a';
const WRONG = 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdr';
const PROBLEM = 'is a bech32 address whose checksum is wrong';

describe('payouts enqueue', () => {
  it('accepts a payout with every field', async () => {
    const result = await cli.json(
      ...['enqueue', '--payout-id', 'p-1', '--payment-id', '4', '--amount', '100.50', '--address-to', 'rPT1Sjq'],
      ...['--destination-tag', '4711', '--symbol', 'USD', '--reference', 'invoice 77', '--priority', '3'],
      ...['--not-before', '2030-01-31T09:00:00+01:00', '--metadata', '{"order":[7]}', '--batch', 'b-1'],
    );
    expect(result).toEqual({ payoutId: 'p-1', state: 'queued', created: true });
    expect(await cli.ledger.get('p-1')).toMatchObject({
      ...{ paymentId: 4, amount: '100.5', addressTo: 'rPT1Sjq:4711', symbol: 'USD', reference: 'invoice 77' },
      ...{ priority: 3, notBefore: '2030-01-31T08:00:00.000Z', metadata: { order: [7] }, batch: 'b-1' },
    });
  });

  it('may be repeated, and refuses other data with exit code 4', async () => {
    expect(await cli.enqueue('p-1')).toMatchObject({ code: 0, stdout: 'Payout p-1 is queued.\n', stderr: '' });
    const again = 'Payout p-1 was there already, with the same data: it is queued.\n';
    expect(await cli.enqueue('p-1')).toMatchObject({ code: 0, stdout: again });
    expect(await cli.enqueue('p-1', '--amount', '13')).toMatchObject({
      ...{ code: 4, stdout: '' },
      stderr: textWith(
        /^payouts: Payout p-1 already exists \(queued\) with a different amount\. Use a new payoutId, .*\n$/,
      ),
    });
  });

  it('names every option that is wrong, one a line, with exit code 2', async () => {
    const args = ['enqueue', '--payment-id', 'USDT', '--amount', '0', '--priority', 'x'];
    expect((await cli.refused(2, '', ...args)).split('\n')).toEqual([
      'payouts: --payout-id: is missing',
      expect.stringMatching(/^payouts: --payment-id: must be a whole number.*\(got "USDT"\)$/),
      'payouts: --amount: must be more than 0 (got "0")',
      'payouts: --address-to: is missing',
      'payouts: --priority: must be a whole number (got "x")',
      '',
    ]);
    expect((await cli.enqueue('p-1', '--metadata', '{')).stderr).toMatch(/^payouts: --metadata: is not JSON: /);
    expect((await cli.enqueue('p-1', '--account', 'x')).stderr).toMatch(/^payouts: --account: must be a whole number/);
    expect((await cli.enqueue('p-1', '--address-to', 'r:1', '--destination-tag', '2')).stderr).toMatch(
      /^payouts: --destination-tag: is given twice/,
    );
  });
});

const enqueueTo = (paymentId: string, addressTo: string): string[] => [
  ...['enqueue', '--payout-id', 'q', '--payment-id', paymentId, '--amount', '1', '--address-to', addressTo],
];

describe('an address with a wrong checksum', () => {
  beforeEach(async () => {
    const currencies = JSON.stringify({ currencies: [{ paymentId: 6, name: 'USDT (TRC-20)' }] });
    await cli.redis.hset(cli.keys.gateway, 'currencies', currencies);
  });

  it('is an error of its row, also of a dry run, and of `enqueue`, unless the setting turns that off', async () => {
    const rows = [`p-1,6,1,${TRON},`, `p-2,1,1,${WRONG},`, `p-3,6,1,${TRON.slice(0, -1)}g,`];
    const file = await cli.file('a.csv', HEADER, ...rows);
    for (const flag of ['--dry-run', '--yes']) {
      const { code, stderr } = await cli.run('import', file, flag);
      expect(code).toBe(2);
      expect(stderr).toContain(
        `line 3: address_to: ${PROBLEM}: copy it again from where it comes from (got "${WRONG}")`,
      );
      expect(stderr).toMatch(/line 4: address_to: is no address of USDT \(TRC-20\), because its checksum/);
    }
    expect(await cli.states('p-1')).toEqual([undefined]);
    await cli.refused(2, `--address-to: ${PROBLEM}`, ...enqueueTo('1', WRONG));
    cli.env['PAYOUT_CHECK_ADDRESSES'] = 'false';
    for (const args of [['import', file, '--yes'], enqueueTo('1', WRONG)]) await cli.ok(...args);
    expect(await cli.ledger.get('p-2')).toMatchObject({ addressTo: WRONG });
  });

  it('is refused by the producer, of one payout and of many, and by the currency that the worker told', async () => {
    const { redis: connection, platformId } = cli;
    const of = (payoutId: string, addressTo: string) => ({ payoutId, paymentId: 6, amount: '1', addressTo });
    const [tron, wrongTron] = [of('tron', TRON), of('wrong', `${TRON.slice(0, -1)}g`)];
    const producer = new PayoutProducer({ connection, platformId });
    await expect(producer.enqueue(of('p', WRONG))).rejects.toThrow(`addressTo: ${PROBLEM}`);
    await expect(producer.enqueueMany([tron, wrongTron])).rejects.toThrow('[1].addressTo: is no address of USDT');
    expect(await producer.get('tron')).toBeUndefined();
    const trusting = new PayoutProducer({ connection, platformId, checkAddresses: false });
    expect(await trusting.enqueueMany([wrongTron, of('p', WRONG)])).toMatchObject({ created: 2 });
    for (const each of [producer, trusting]) await each.close();
  });

  it('that an earlier version accepted is still read, and may be sent', async () => {
    const request = { paymentId: 5, amount: '1', addressTo: `${RAW_TON}:nan` };
    await cli.ledger.enqueue([aPayout('old', request)]);
    expect(await cli.ok('get', 'old', '--json')).toContain(RAW_TON);
    expect(ENDPOINTS.withdraw.request.safeParse(request).success).toBe(true);
  });
});

it('a payment id that the gateway does not list is an error of its row, also of a dry run, and of `enqueue`', async () => {
  const currencies = [{ paymentId: 6, name: 'USDT (TRC-20)', usdRate: undefined }];
  await cli.ledger.enqueue([aPayout('old', { amount: '1', addressTo: TRON })]);
  await writeGatewayFacts(cli.ledger.connection, { currencies, currenciesAt: Date.now(), isWhole: true });
  const rows = [`old,7,1,${TRON},`, `p-1,6,1,${TRON},`, `p-2,7,1,${TRON},`, `p-2,7,1,${TRON},`];
  const file = await cli.file('ids.csv', HEADER, ...rows);
  for (const flag of ['--dry-run', '--yes']) {
    const { code, stderr } = await cli.run('import', file, flag);
    expect(code).toBe(2);
    expect(stderr).toMatch(/line 4: payment_id: must be in the gateway's list of .*: 6 USDT \(TRC-20\) \(got 7\)/);
    // That payout exists.
    expect(stderr).not.toContain('line 2');
  }
  expect(await cli.states('p-1')).toEqual([undefined]);
  const skipping = await cli.json('import', file, '--yes', '--skip-invalid');
  expect(skipping).toMatchObject({ payouts: 2, invalid: 1, created: 1, existing: 1 });
  await cli.refused(2, '--payment-id: must be in the gateway', ...enqueueTo('7', TRON));
  cli.env['PAYOUT_CHECK_PAYMENT_IDS'] = 'false';
  for (const args of [['import', file, '--yes'], enqueueTo('7', TRON)]) await cli.ok(...args);
});

describe('a column destination_tag', () => {
  it('beside an address with a colon of its own is no second tag', async () => {
    const file = await cli.file('t.csv', HEADER, `p-1,5,1,${RAW_TON},`, `p-2,5,1,${RAW_TON},77`, `p-3,11,1,${CASH},77`);
    const { stderr } = await cli.run('import', file, '--dry-run');
    expect(stderr).not.toContain('given twice');
    expect(stderr).toMatch(/line 2: .*write "UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA"/);
    expect(stderr).toMatch(/line 3: .*write "UQDKbjIcfM6ezt8KjKJJLshZJJSqX7XOA4ff-W72r5gqPuwA:77"/);
    expect(stderr).toMatch(/line 4: address_to: has a destination tag, which its network does not have/);
  });

  it('with what is no tag is an error of its row', async () => {
    const tags = ['1.23457E+12', '#N/A', '"123,456"', 'undefined'];
    const rows = [...tags, '12\u200b3', '\uff11\uff12'].map(
      (tag, index) => `p-${index},4,1,r9cZA1mLK5R5Am25ArfXFmqgNwjZgnfk59,${tag}`,
    );
    const { code, stderr } = await cli.run('import', await cli.file('tag.csv', HEADER, ...rows), '--dry-run');
    expect(code).toBe(2);
    const wrong = [...stderr.matchAll(/^line (\d+): address_to: (?:has a destination tag|contains an invisible)/gm)];
    expect(wrong.map(([, line]) => Number(line))).toEqual(rows.map((_, index) => index + 2));
  });
});
