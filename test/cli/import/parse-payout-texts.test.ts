import { describe, expect, it } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import { readFileSync } from 'node:fs';
import { parsePayoutTexts } from '../../../src/cli/import/parse-payout-texts.js';
import { parseInput } from '../../../src/base/fields.js';
import { payoutInputSchema } from '../../../src/ledger/payout.js';
import { checkRecipient } from '../../../src/producer/parse-payouts.js';
import { CURRENCIES, findCurrency } from '../../../src/sandbox/currency.js';

describe('parsePayoutTexts', () => {
  it('reads numbers and JSON and joins the destination tag', () => {
    const texts = {
      payoutId: 'p-1',
      paymentId: '4',
      addressTo: 'r1',
      destinationTag: '7',
      priority: '2',
      metadata: '[1]',
    };
    expect(parsePayoutTexts(texts)).toMatchObject({ paymentId: 4, addressTo: 'r1:7', priority: 2, metadata: [1] });
  });

  it('keeps what is no number as it is, for the schema to refuse with its value', () => {
    expect(parsePayoutTexts({ paymentId: '4x', priority: '1e3' })).toMatchObject({ paymentId: '4x', priority: '1e3' });
  });
});

describe('examples/payouts.csv', () => {
  const file = readFileSync(new URL('../../../examples/payouts.csv', import.meta.url), 'utf8');
  const rows = parse<Record<string, string>>(file, { columns: true });

  it('holds 20 payouts that the producer and the sandbox accept', () => {
    const payouts = rows.map((row) =>
      parseInput(
        payoutInputSchema,
        parsePayoutTexts({
          payoutId: row['payout_id'],
          paymentId: row['payment_id'],
          amount: row['amount'],
          addressTo: row['address_to'],
          destinationTag: row['destination_tag'] === '' ? undefined : row['destination_tag'],
          symbol: row['symbol'],
          reference: row['reference'],
        }),
      ),
    );
    expect(new Set(payouts.map(({ payoutId }) => payoutId)).size).toBe(20);
    const currencies = CURRENCIES.map(({ paymentId, code, network }) => ({
      ...{ paymentId, usdRate: undefined, name: code === 'USDT' ? `${code} (${network})` : code },
    }));
    for (const payout of payouts) checkRecipient(payout, { checksums: true, currencies });
    for (const { paymentId, addressTo } of payouts) {
      expect(addressTo.includes(':')).toBe(findCurrency(paymentId)?.hasDestinationTag);
    }
  });
});
