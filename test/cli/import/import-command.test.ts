import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { checkRows } from '../../../src/cli/import/check-rows.js';
import type { Row } from '../../../src/cli/import/read-records.js';
import { removePayouts } from '../../ledger/support/remove-payouts.js';
import { testRedisUrl } from '../../support/account.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { startProgram } from '../../support/cli.js';
import { textWith, useCli } from '../support/cli-rig.js';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { aPayout } from '../../ledger/support/a-payout.js';

const cli = useCli();
const BTC = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
const HEADER = 'payout_id,payment_id,amount,address_to';
const csv = async (...rows: string[]) => cli.file('payouts.csv', HEADER, ...rows);

/** The built program at a terminal of its own. @returns what the terminal showed, each gap as one space */
async function importAtTerminal(file: string, answer: string) {
  const env = { REDIS_URL: testRedisUrl(), TERM: 'xterm', ...cli.env };
  const importing = [process.execPath, findBuiltProgram(), 'import', file].join(' ');
  const given = { env, input: `${answer}\n`, inputStaysOpen: true } as const;
  // `script` makes the terminal.
  const { code, stdout } = await startProgram('script', ['-qec', importing, '/dev/null'], given).result;
  return { code, shown: stdout.replace(/\s+/g, ' ') };
}

/** The errors of a dry run. */
async function errorsOf(file: string, ...args: string[]) {
  const { code, stderr } = await cli.run('import', file, '--dry-run', ...args);
  expect(code).toBe(2);
  return stderr;
}

it('enqueues every column of a CSV file into a batch', async () => {
  const file = await cli.file(
    'all.csv',
    '\uFEFFmetadata, payout_id ,payment_id,amount,address_to,destination_tag,symbol,reference,priority,not_before',
    '"{""order"":7}",p-1,4,0.100000000000000001,rX,4711,USD,"Müller, ""rent""",3,2030-01-31T09:00:00Z',
    '',
    ',p-2,4,0.2,rY:1,,USD,,,',
    ',p-3,6,1000000000000000000000.5,TX,,,,,',
  );
  await cli.listCurrency();
  const stdout = await cli.ok('import', file, '--yes', '--batch', 'b-1');
  expect(stdout).toMatch(
    /^3 rows: 3 payouts\n[^]*\n +4 +USD +2 +0\.300000000000000001\n +6 +1 +1,000,000,000,000,000,000,000\.5 USDT \(TRC-20\)\n/,
  );
  expect(stdout).toContain('Warning: the gateway does not list payment_id 4; see `payouts gateway currencies`');
  expect(stdout).toMatch(/one every 1010 ms, sending them takes at least 3 s\.\n3 payouts enqueued\.\n$/);
  expect(await cli.ledger.get('p-1')).toMatchObject({
    ...{ state: 'queued', paymentId: 4, amount: '0.100000000000000001', addressTo: 'rX:4711', symbol: 'USD' },
    ...{ reference: 'Müller, "rent"', priority: 3, notBefore: '2030-01-31T09:00:00.000Z' },
    ...{ metadata: { order: 7 }, batch: 'b-1' },
  });
  expect((await cli.jobs()).sort()).toEqual(['p-1~0', 'p-2~0', 'p-3~0']);
});

it('reads JSON lines, also from stdin, and reports the result as JSON', async () => {
  const lines = [
    '\uFEFF{"payoutId":"p-1","paymentId":6,"amount":"12.50","addressTo":"TX","metadata":[1]}',
    '{"payoutId":"p-1","paymentId":6,"amount":"12.5","addressTo":"TX","metadata":[1]}\r',
    ' ',
    '{"payout_id":"p-2","payment_id":6,"amount":"1","address_to":"TY"}',
  ];
  const { code, stdout } = await cli.start(['import', '-', '--yes', '--json'], { input: lines.join('\n') }).result;
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    {
      ...{ file: 'stdin', rows: 3, payouts: 2, repeated: 1, invalid: 0, estimatedMs: 2_020, dryRun: false },
      ...{ totals: [{ paymentId: 6, payouts: 2, amount: '13.5' }], sameAsRecent: 0 },
      unchecked: [{ reason: "no worker has published the gateway's list of currencies", payouts: 2 }],
      ...{ created: 2, existing: 0, otherBatch: 0, conflicts: 0, removed: 0 },
    },
  ]);
  expect(await cli.ok('import', await cli.file('again.jsonl', ...lines), '--yes')).toMatch(
    /, 1 repeated[^]*0 payouts enqueued, 2 already existed\.\n$/,
  );
});

it('names every error with its line and column, and enqueues nothing', async () => {
  const file = await cli.file(
    'wrong.csv',
    `${HEADER},destination_tag,metadata`,
    ...['p-1,6,12.5,TX,,', 'p 2,x,1e3,,,', 'p-3,6,1', 'p-4,6,1,TX:1,2,', 'p-5,6,1,TX,,{', 'p-1,6,12.6,TX,,'],
  );
  const stderr = await cli.refused(2, '', 'import', file, '--yes');
  expect(stderr.trim().split('\n')).toEqual([
    textWith(/^line 3: payout_id: must be 1 to 64 .*\(got "p 2"\)$/),
    textWith(/^line 3: payment_id: must be a whole number.*\(got "x"\)$/),
    textWith(/^line 3: amount: must be a decimal string.*\(got "1e3"\)$/),
    'line 3: address_to: is missing',
    'line 4: row: has 3 values, but the first line names 6 columns',
    textWith(/^line 5: destination_tag: is given twice/),
    textWith(/^line 6: metadata: is not JSON/),
    'line 7: payout_id: already used in line 2 with a different amount (got "p-1")',
    textWith(/5 of 6 rows have errors, nothing was enqueued; fix them, or skip them with --skip-invalid$/),
  ]);
  expect(await cli.states('p-1')).toEqual([undefined]);
  const skipped = await cli.run('import', file, '--yes', '--skip-invalid');
  expect(skipped).toMatchObject({ code: 0, stdout: textWith(/1 payout, 5 with errors, skipped/) });
  expect(await cli.ledger.get('p-1')).toMatchObject({ amount: '12.5' });
});

it('leaves payouts that exist with other data, or were removed', async () => {
  await cli.make('completed', 'p-9');
  expect(await removePayouts(cli.ledger.connection, 'completed', Date.now() + 1_000, 10)).toHaveLength(1);
  await cli.enqueue('p-1');
  const file = await csv('p-0,6,1,T', 'p-1,7,12.6,TXYZ9', 'p-9,6,12.5,TXYZ9');
  const { code, stdout, stderr } = await cli.run('import', file, '--yes');
  expect([code, stdout]).toEqual([4, textWith(/\n1 payout enqueued, 1 with different data, 1 removed earlier\.\n$/)]);
  expect(stderr).toMatch(/^line 3: payout p-1 already exists \(queued\) with a different payment_id, amount$/m);
  expect(stderr).toMatch(/^line 4: payout p-9 ended as completed and was removed .*It is not paid again; use a new/m);
  expect(await cli.ledger.get('p-1')).toMatchObject({ paymentId: 6, amount: '12.5' });
});

it('keeps one batch a file, and counts existing payouts of another one', async () => {
  await cli.enqueue('p-1');
  const file = await csv('p-1,6,12.5,TXYZ9', 'p-2,6,1,T');
  expect(await cli.ok('import', file, '--yes', '--batch', 'b-1')).toMatch(/1 of those .* belong to another batch/);
  const other = await cli.file(
    'batch.jsonl',
    '{"payoutId":"p","paymentId":6,"amount":"1","addressTo":"T","batch":"b"}',
  );
  expect(await errorsOf(other, '--batch', 'b-2')).toMatch(/line 1: batch: must be absent, or that of/);
});

it('needs no Redis for a dry run, asks before it enqueues', async () => {
  cli.env['REDIS_URL'] = 'redis://127.0.0.1:1';
  const file = await csv('p-1,6,1,T');
  expect(await cli.run('import', file, '--dry-run')).toMatchObject({
    ...{ code: 0, stdout: textWith(/1 row: 1 payout\n.*Dry run: nothing was enqueued\.\n$/s) },
  });
  await cli.refused(2, /--yes: is required/, 'import', file);
  expect(await cli.run('import', file, '--yes')).toMatchObject({
    ...{ code: 1, stderr: textWith(/payouts: Redis unavailable .* asking again is safe/) },
  });
});

it('refuses a file without rows, with other bytes, that cannot be read', async () => {
  const refusedAs = async (content: string | Buffer) => {
    await writeFile(join(cli.dir, 'refused'), content);
    return errorsOf(join(cli.dir, 'refused'));
  };
  for (const text of [HEADER, '']) expect(await refusedAs(text)).toMatch(/contains no payouts/);
  const latin = Buffer.from(`${HEADER}\np-1,6,1,M\xfcller`, 'latin1');
  expect(await refusedAs(latin)).toMatch(/line 2: row: is not UTF-8/);
  expect(await refusedAs(`{"payoutId":1}\n[1]\n{\n{"payoutId":"${'x'.repeat(70_000)}"}`)).toMatch(
    /^line 1: payoutId: must be a string[^]*^line 2: row: is JSON, but not[^]*^line 3: row: is not[^]*^line 4: row: is longer than 65536 characters$/m,
  );
  await cli.refused(2, /none: cannot be read: ENOENT/, 'import', join(cli.dir, 'none'), '--yes');
});

it('stops at a signal while it waits for a pipe', async () => {
  const input = `${HEADER}\np-1,6,-1,T\np-2,6,1,T\n`;
  const waiting = cli.start(['import', '-', '--yes', '--skip-invalid'], { input, inputStaysOpen: true });
  await waiting.waitForOutput(/line 2: amount/);
  waiting.kill('SIGINT');
  expect(await waiting.result).toMatchObject({ code: 1, stderr: textWith(/nothing was changed/) });
  const cut = cli.start(['import', '-', '--yes'], { input: `${HEADER}\np-1,6,1,TXYZ` });
  expect(await cut.result).toMatchObject({ code: 2, stderr: textWith(/^line 2: row: does not end with a line b/) });
});

it('refuses a column or field that is given twice', async () => {
  const both = await cli.file('both.csv', `payout_id,payoutId,payment_id,amount,address_to`, 'p-1,p-2,6,1,T');
  expect(await errorsOf(both)).toMatch(/line 1: payoutId: is the same column as payout_id/);
  const rest = '"paymentId":6,"addressTo":"T"';
  const rows = [
    `{"payoutId":"q",${rest},"amount":"1","metadata":{"a":{"a":"\\"a\\":{"}}}`,
    `{"payoutId":"p",${rest},"amount":"0.1","am\\u006funt":"100"}`,
    `{"payoutId":"p",${rest},"amount":"0.1","metadata":[{"id":1},{"id":1,"id":2}]}`,
    `{"payoutId":"p",${rest},"__proto__":{"amount":"100"}}`,
    `{"payoutId":"a","payout_id":"b",${rest},"amount":"1"}`,
  ];
  const errors = await errorsOf(await cli.file('twice.jsonl', ...rows));
  expect(errors).not.toContain('line 1:');
  for (const problem of [
    ...['line 2: row: has "amount" twice: give it once\n', 'line 3: row: has "id" twice: give it once\n'],
    ...['line 4: __proto__: is not a known field\n', 'line 5: payout_id: is the same field as payoutId: give one'],
  ])
    expect(errors).toContain(problem);
});

it('takes semicolons where its first line has them', async () => {
  const semicolons = HEADER.replaceAll(',', ';');
  const file = await cli.file('semicolons.csv', '', semicolons, 'p-1;6;12.5;"TX;1"', 'p-2;6;1;T,2');
  for (const flags of [[], ['--delimiter', ';']]) await cli.ok('import', file, '--yes', ...flags);
  expect(await cli.ledger.get('p-1')).toMatchObject({ addressTo: 'TX;1', amount: '12.5' });
  expect(await cli.ledger.get('p-2')).toMatchObject({ addressTo: 'T,2' });
  expect(await errorsOf(file, '--delimiter', ',')).toMatch(/payout_id: is missing/);
  const errors = await errorsOf(await cli.file('commas.csv', semicolons, `p-1;6;12,5;T`));
  expect(errors).toMatch(/line 2: amount: has a comma, which may stand before decimals or between .*\(got "12,5"\)/);
});

it('payouts list --csv quotes what a spreadsheet would run, and import reads it again', async () => {
  for (const [index, reference] of ['=1+1', "'=quoted", 'Müller, "rent"'].entries()) {
    await cli.enqueue(index === 0 ? '-p' : `p-${index}`, '--reference', reference, '--batch', 'b');
  }
  const list = ['list', '--batch', 'b'];
  const stdout = await cli.ok(...list, '--csv');
  expect(stdout).not.toMatch(/(^|,)[=-]/m);
  expect(await cli.ok(...list, '--csv', '--no-quote-formulas')).toMatch(/\n-p,[^]*,=1\+1,/);
  const file = await cli.file('copy.csv', stdout.trim().replaceAll(/(,[^,\n]*){13}$/gm, ''));
  const read = async () => (await cli.lines(...list)).map(({ payoutId, reference }) => [payoutId, reference]);
  const before = await read();
  // Into an account that has none of them.
  cli.env['GATEWAY_PLATFORM_ID'] = String(cli.platformId + 1);
  await cli.ok('import', file, '--batch', 'b', '--yes');
  expect(await read()).toEqual(before);
});

/** `payouts enqueue`, and what it and `import` refuse; the rules are in test/producer. */

const TRON = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const WRONG = 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdr';
const PROBLEM = 'is a bech32 address whose checksum is wrong';

it('payouts enqueue accepts a payout with every field', async () => {
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

it('payouts enqueue may be repeated, and refuses other data with exit code 4', async () => {
  expect(await cli.enqueue('p-1')).toMatchObject({ code: 0, stdout: 'Payout p-1 is queued.\n' });
  const again = 'Payout p-1 was there already, with the same data: it is queued.\n';
  expect(await cli.enqueue('p-1')).toMatchObject({ code: 0, stdout: again });
  const other = textWith(/^payouts: Payout p-1 already exists \(queued\) with a different amount\. Send identical/m);
  expect(await cli.enqueue('p-1', '--amount', '13')).toMatchObject({ code: 4, stdout: '', stderr: other });
});

it('payouts enqueue names every option that is wrong, one a line, with exit code 2', async () => {
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

const enqueueTo = (paymentId: string, addressTo: string) => [
  ...['enqueue', '--payout-id', 'q', '--payment-id', paymentId, '--amount', '1', '--address-to', addressTo],
];

it('a wrong checksum is an error of its row, also of a dry run', async () => {
  const file = await csv(`p-1,6,1,${TRON}`, `p-2,1,1,${WRONG}`, `p-3,6,1,${TRON.slice(0, -1)}g`);
  const listed = [{ paymentId: 6, name: 'USDT (TRC-20)', usdRate: undefined, chain: 'Tron' as const }];
  await writeGatewayFacts(cli.ledger.connection, { currencies: listed, currenciesAt: Date.now(), isWhole: false });
  for (const flag of ['--dry-run', '--yes']) {
    const { code, stderr } = await cli.run('import', file, flag);
    expect([code, stderr]).toEqual([2, textWith(`line 3: address_to: ${PROBLEM}: copy it again from where`)]);
    expect(stderr).toContain('line 4: address_to: is no address of Tron, on which the gateway pays USDT (TRC-20)');
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
  const rows = ['old,7', 'p-1,6', 'p-2,7'].map((ids) => `${ids},1,${TRON}`);
  const file = await csv(...rows);
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

it('TRON addresses with the id of BTC are errors, and more BTC than there is is said beside its worth in USD', async () => {
  const usdt = { paymentId: 6, name: 'USDT', usdRate: '1', network: 'TRC-20', chain: 'Tron' as const };
  const btc = { paymentId: 1, name: 'BTC', usdRate: '64250.5', network: 'Bitcoin', chain: 'Bitcoin' as const };
  await writeGatewayFacts(
    cli.ledger.connection,
    { currencies: [usdt, btc], currenciesAt: Date.now(), isWhole: true },
    { balance: [{ paymentId: 1, symbol: undefined, amount: '1.5' }], balanceAt: Date.now() },
  );
  const wrong = await csv(`p-1,1,4385.19,${TRON}`, `p-2,1,1,${BTC}`);
  for (const flag of ['--dry-run', '--yes']) {
    const { code, stderr } = await cli.run('import', wrong, flag);
    expect([code, stderr]).toEqual([
      2,
      textWith('line 2: address_to: is an address of Tron, but the gateway pays BTC on Bitcoin'),
    ]);
  }
  const large = await csv(`p-1,1,4385.19,${BTC}`, `p-2,6,7,${TRON}`, `p-3,6,7,some-wallet`);
  const stdout = await cli.ok('import', large, '--dry-run');
  expect(stdout).toMatch(/ 1 +4,385\.19 BTC +281,750,650\.09\n/);
  expect(stdout).toContain("The gateway's balance is 1.5 BTC, these payouts need 4,385.19 BTC: more than there is.\n");
  expect(stdout).toContain('Network not checked of 1 payout: it is a name, and no address of Tron.\n');
});

it('a process at a terminal says above its question that a file needs more than there is', async () => {
  const currencies = [{ paymentId: 1, name: 'BTC', usdRate: '64250.5', network: 'Bitcoin', chain: 'Bitcoin' as const }];
  await writeGatewayFacts(
    cli.ledger.connection,
    { currencies, currenciesAt: Date.now(), isWhole: true },
    { balance: [{ paymentId: 1, symbol: undefined, amount: '1.5' }], balanceAt: Date.now() },
  );
  const { code, shown } = await importAtTerminal(await csv(`p-1,1,1,${BTC}`, `p-2,1,0.6,${BTC}`), 'n');
  expect(shown).toMatch(/ 1\.6 BTC 102,800\.8 .*these payouts need 1\.6 BTC: more than there is\. .*\[y\/N\]/);
  expect([code, ...(await cli.states('p-1', 'p-2'))]).toEqual([1, undefined, undefined]);
}, 60_000);

it('the same rows under new ids are said, in a dry run and before the question', async () => {
  const rows = (prefix: string) => ['5', '6', '7'].map((amount, index) => `${prefix}-${index},6,${amount},TX,Rent`);
  const file = async (prefix: string, ...more: string[]) =>
    cli.file(`${prefix}.csv`, `${HEADER},reference`, ...rows(prefix), ...more);
  const first = await file('may');
  await cli.ok('import', first, '--yes');
  expect(await cli.ok('import', first, '--yes')).not.toContain('Warning');
  const again = await file('again', 'other,6,5,TX,Other', 'another,6,5,TY,Rent');
  const warning =
    /Warning: 3 of these rows have the address, amount and reference of payouts of the last 30 days with other ids, such as may-\d \(queued\)\.\n/;
  expect(await cli.ok('import', again, '--dry-run')).toMatch(warning);
  expect(await cli.json('import', again, '--dry-run')).toMatchObject({ sameAsRecent: 3 });
});

it('a process at a terminal says the same rows under new ids above its question, and a no accepts none', async () => {
  const rows = (prefix: string) => ['5', '6'].map((amount, index) => `${prefix}-${index},6,${amount},TX,Rent`);
  const file = async (prefix: string) => cli.file(`${prefix}.csv`, `${HEADER},reference`, ...rows(prefix));
  await cli.ok('import', await file('may'), '--yes');
  const again = await file('again');
  for (const [answer, code, state] of [
    ['n', 1, undefined],
    ['y', 0, 'queued'],
  ] as const) {
    const { code: ended, shown } = await importAtTerminal(again, answer);
    expect(shown).toMatch(
      /Warning: 2 of these rows have the address, amount and reference of payouts of the last 30 days with other ids, such as may-\d \(queued\)\. .*\[y\/N\]/,
    );
    expect([answer, ended, ...(await cli.states('again-0'))]).toEqual([answer, code, state]);
  }
}, 60_000);

it('an import has at most 250,000 rows', async () => {
  async function* rows(): AsyncGenerator<Row> {
    for (let line = 1; line <= 250_001; line += 1) yield Promise.resolve({ line, problems: [] });
  }
  const source = { name: 'f', sizeBytes: 0, bytesRead: () => 0, nameField: String, rows: rows() };
  const check = checkRows(source, { checksums: false }, new AbortController().signal, () => undefined);
  await expect(check).rejects.toThrow('f: has more than 250000 rows: split the file');
});
