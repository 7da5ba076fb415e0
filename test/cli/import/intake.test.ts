import { describe, expect, it } from '@jest/globals';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { textWith, useCli } from '../support/cli-rig.js';

/** `payouts enqueue`, and what it and `import` refuse; the rules are in test/producer. */

const cli = useCli();
const HEADER = 'payout_id,payment_id,amount,address_to,destination_tag';
const TRON = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
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
    const other = textWith(/^payouts: Payout p-1 already exists \(queued\) with a different amount\. Use a new/);
    expect(await cli.enqueue('p-1', '--amount', '13')).toMatchObject({ code: 4, stdout: '', stderr: other });
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
    const twice = await cli.enqueue('p-1', '--address-to', 'r:1', '--destination-tag', '2');
    expect(twice.stderr).toMatch(/^payouts: --destination-tag: is given twice/);
    expect((await cli.enqueue('p-1', '--metadata', '{')).stderr).toMatch(/^payouts: --metadata: is not JSON: /);
  });
});

const enqueueTo = (paymentId: string, addressTo: string): string[] => [
  ...['enqueue', '--payout-id', 'q', '--payment-id', paymentId, '--amount', '1', '--address-to', addressTo],
];

it('a wrong checksum is an error of its row, also of a dry run', async () => {
  const file = await cli.file('a.csv', HEADER, `p-1,6,1,${TRON},`, `p-2,1,1,${WRONG},`);
  for (const flag of ['--dry-run', '--yes']) {
    const { code, stderr } = await cli.run('import', file, flag);
    expect([code, stderr]).toEqual([2, textWith(`line 3: address_to: ${PROBLEM}: copy it again from where`)]);
  }
  expect(await cli.states('p-1')).toEqual([undefined]);
  await cli.refused(2, `--address-to: ${PROBLEM}`, ...enqueueTo('1', WRONG));
  cli.env['PAYOUT_CHECK_ADDRESSES'] = 'false';
  for (const args of [['import', file, '--yes'], enqueueTo('1', WRONG)]) await cli.ok(...args);
});

it('a payment id that the gateway does not list is one too', async () => {
  const currencies = [{ paymentId: 6, name: 'USDT (TRC-20)', usdRate: undefined }];
  await cli.ledger.enqueue([aPayout('old', { amount: '1', addressTo: TRON })]);
  await writeGatewayFacts(cli.ledger.connection, { currencies, currenciesAt: Date.now(), isWhole: true });
  const rows = [`old,7,1,${TRON},`, `p-1,6,1,${TRON},`, `p-2,7,1,${TRON},`];
  const file = await cli.file('ids.csv', HEADER, ...rows);
  for (const flag of ['--dry-run', '--yes']) {
    const { code, stderr } = await cli.run('import', file, flag);
    expect([code, stderr]).toEqual([2, textWith(/line 4: payment_id: must be in the gateway's list .*\(got 7\)/)]);
    expect(stderr).not.toContain('line 2');
  }
  expect(await cli.states('p-1')).toEqual([undefined]);
  const skipping = await cli.json('import', file, '--yes', '--skip-invalid');
  expect(skipping).toMatchObject({ payouts: 2, invalid: 1, created: 1, existing: 1 });
  await cli.refused(2, '--payment-id: must be in the gateway', ...enqueueTo('7', TRON));
  cli.env['PAYOUT_CHECK_PAYMENT_IDS'] = 'false';
  for (const args of [['import', file, '--yes'], enqueueTo('7', TRON)]) await cli.ok(...args);
});
