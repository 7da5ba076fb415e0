import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { parseInput } from '../../../src/base/fields.js';
import { PAYOUT_TABLE, readCsvRows } from '../../../src/cli/import/read-csv-rows.js';
import { readCsvRecords, type CsvValues, type Row } from '../../../src/cli/import/read-records.js';
import { payoutInputSchema } from '../../../src/ledger/payout.js';
import { checkNetwork } from '../../../src/gateway/wallet/check-network.js';
import { checkRecipient } from '../../../src/producer/parse-payouts.js';
import { parseCurrencies } from '../../../src/gateway/parse-currencies.js';
import { CURRENCIES, findCurrency } from '../../../src/sandbox/currency.js';

const HEADER = 'payout_id,payment_id,amount,address_to,metadata';

async function read(text: string | Buffer, chunkBytes = 65_536): Promise<Row[]> {
  const bytes = Buffer.from(text);
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes));
  const rows: Row[] = [];
  for await (const row of readCsvRows(Readable.from(chunks, { objectMode: false }), PAYOUT_TABLE, false)) {
    rows.push(row);
  }
  return rows;
}

/** `2 p-1`, or `3 row: what is wrong`. */
function describeRow(row: Row) {
  if ('input' in row) return `${row.line} ${String(row.input['payoutId'])}`;
  return `${row.line} ${row.problems.map(({ field, message }) => `${field}: ${message}`).join('; ')}`;
}

it.each([1, 7, 65_536])(
  'counts lines correctly with blank lines and line breaks in values (chunks of %d bytes)',
  async (chunkBytes) => {
    const text = [
      ...[`\uFEFF"payout_id" , payment_id,amount,address_to,metadata\r`, 'p-2,6,1,T,\r', '', '   \r', ',,,,'],
      ...['p-6,6,1,T,"{\r', '  ""name"": ""Jürgen €"",\r', '', '  ""a"": 1 }"\r'],
      ...['p-10,6,1,"T"  ,', 'p-11,6,1,12" pipe,', 'p-12,6,1', 'p-13,6,1,T,'],
    ].join('\n');
    const rows = await read(text, chunkBytes);
    expect(rows.map(describeRow)).toEqual([
      '2 p-2',
      '6 p-6',
      '10 p-10',
      expect.stringMatching(/^11 row: value 4 contains a quote/),
      '12 row: has 3 values, but the first line names 5 columns',
      '13 p-13',
    ]);
    expect(rows[1]).toMatchObject({ input: { metadata: { name: 'Jürgen €', a: 1 } } });
  },
);

it.each([
  [
    'unknown, missing and repeated columns',
    `${HEADER.replace('amount', 'amout')},payout_id\n`,
    /line 1: "amout": is not a known column \(payout_id, .*line 1: amount: is missing.*payout_id: is named twice/,
  ],
  ['results', `${HEADER},state\n`, /"state": is a result column/],
  ['tabs', `${HEADER.replaceAll(',', '\t')}\n`, /payout_id: is missing: .* separated by commas or semicolons/],
  ['UTF-16', Buffer.from(`\uFEFF${HEADER}\n`, 'utf16le'), /line 1: is not UTF-8 text/],
])('refuses a header with %s', async (_, text, message) => {
  await expect(read(text)).rejects.toThrow(message);
});

async function readRecords(text: string): Promise<CsvValues[]> {
  const records: CsvValues[] = [];
  for await (const record of readCsvRecords(Readable.from([Buffer.from(text)]), false)) {
    records.push(record);
  }
  return records;
}

it.each([
  ['"a" "b",c', /^value 1 contains a quote but is not quoted/],
  ['a,b, "" ""', /^cannot be split|contains a quote/],
])('names the value of a row of which it would drop quotes, and goes on: %s', async (row, message) => {
  expect(await readRecords(`x,y,z\n${row}\nd,"e",f\n`)).toEqual([
    { line: 1, values: ['x', 'y', 'z'] },
    { line: 2, message: expect.stringMatching(message) },
    { line: 3, values: ['d', 'e', 'f'] },
  ]);
});

it('refuses a file whose quote is not closed, for no row behind it is certain', async () => {
  for (const rows of ['a,"b', 'a,"b\n"c\nd']) {
    await expect(readRecords(`x,y\n${rows}`)).rejects.toThrow(/^line 2: opens a quote that is not closed/);
  }
  for (const quote of ['"', '']) {
    const endless = readRecords(`x,y\na,${quote}${'x'.repeat(3_000_000)}`);
    await expect(endless).rejects.toThrow(/^line 2: has no end within 1048576 bytes/);
  }
});

it('examples/payouts.csv holds 20 payouts that the producer and the sandbox accept', async () => {
  const rows = await read(readFileSync(new URL('../../../examples/payouts.csv', import.meta.url)));
  const payouts = rows.map((row) => parseInput(payoutInputSchema, 'input' in row ? row.input : row));
  expect(new Set(payouts.map(({ payoutId }) => payoutId)).size).toBe(20);
  const list = CURRENCIES.map(({ paymentId, code, name, network }) => ({
    payment_id: paymentId,
    currency: code,
    name,
    network,
  }));
  const currencies = parseCurrencies(list);
  for (const payout of payouts) {
    checkRecipient(payout.addressTo, { checksums: true });
    const currency = currencies.find(({ paymentId }) => paymentId === payout.paymentId);
    expect(checkNetwork(payout.addressTo, currency)).toEqual({ kind: 'same', chain: currency?.chain });
    expect(payout.addressTo.includes(':')).toBe(findCurrency(payout.paymentId)?.hasDestinationTag);
  }
});
