import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { fromUnits, toUnits, worthInUnits } from '../src/base/decimal.js';
import type { InvalidInputError, Problem } from '../src/base/errors.js';
import { amountField, baseUrlField, parseInput, payoutIdField } from '../src/base/fields.js';
import { platformIdField, txhashField } from '../src/base/fields.js';
import { formatAmount, formatDuration, formatExact, formatTimeUtc } from '../src/base/format.js';
import { toPlainLog } from '../src/base/plain-text.js';

const accepts = (schema: z.ZodType, value: unknown) => schema.safeParse(value).success;

it.each([
  ...['', '0.0', '-1', '+1', '1e3', '.5', '5.', '01', '1,5', ' 1', '1\n', '0x10', '١', '1.2.3'],
  ...['0.0000000000000000001', '1.0000000000000000000', '1'.repeat(31), 12.5, 1n, undefined, ['1']],
  // A copied amount is refused where it would be paid, not read as another.
  ...[formatAmount('1234'), formatAmount('1234567.5')],
])('an amount %p is refused', (value) => {
  expect(accepts(amountField, value)).toBe(false);
});

it('an amount keeps its value, and equal values become equal strings', () => {
  const digits = fc.string({ unit: fc.constantFrom('0', '1', '9'), minLength: 1, maxLength: 18 });
  const amount = fc.tuple(fc.bigInt({ min: 1n, max: 10n ** 30n - 1n }), digits);
  fc.assert(
    fc.property(amount, ([whole, places]) => {
      const units = BigInt(`${whole}${places.padEnd(18, '0')}`);
      const read = amountField.parse(`${whole}.${places}`);
      expect(read).not.toMatch(/\.\d*0$|\.$/);
      expect(toUnits(read)).toBe(units * 10n ** 18n);
      expect(fromUnits(toUnits(read))).toBe(read);
      expect(amountField.parse(read)).toBe(read);
    }),
    { numRuns: 1_000 },
  );
});

it.each([
  ['0.1', '0.2', '0.02'],
  ['0.000000000000000001', '0.000000000000000001', '0.000000000000000000000000000000000001'],
  ['123456789012345678901234567890', '64250.5', '7932160422437716042243771604216445'],
])('an amount of %s times %s is worth %s', (text, rate, worth) => {
  expect(fromUnits(worthInUnits(text, rate))).toBe(worth);
});

const DIGITS = '9'.repeat(100_000);
it.each([
  ['-1234567.5', '-1,234,567.5', '-1,234,567.5'],
  ['5000.00', '5,000.00', '5,000.00'],
  ['2993031.152999999999999999', '≈ 2,993,031.153', '2,993,031.152999999999999999'],
  ['-12.999999999', '≈ -13', '-12.999999999'],
  ['0.1234567890123456789', '≈ 0.12345679', '0.123456789012345678…'],
  ['0.00000001', '0.00000001', '0.00000001'],
  ['1e-18', '< 0.00000001', '0.000000000000000001'],
  ['-0.000000000000000001', '> -0.00000001', '-0.000000000000000001'],
  ['2.993031153e+06', '2,993,031.153', '2,993,031.153'],
  [1e21, '1,000,000,000,000,000,000,000', '1,000,000,000,000,000,000,000'],
  [DIGITS, `${'9'.repeat(30)}… (100,000 characters)`, `${'9'.repeat(30)}… (100,000 characters)`],
  ['1.2.3', '1.2.3', '1.2.3'],
])('an amount %.30s is shown as %s, and where it must be exact as %s', (amount, shown, exact) => {
  expect([formatAmount(amount), formatAmount(amount, 'USD')]).toEqual([shown, `${shown} USD`]);
  expect(formatExact(amount, 'USD')).toBe(`${exact} USD`);
});

it('an amount that is shown says by its sign how far it is from the one that was given', () => {
  const digits = fc.string({ unit: fc.constantFrom('0', '1', '4', '5', '9'), minLength: 1, maxLength: 18 });
  const units = (text: string) => toUnits(text.replaceAll(',', ''));
  const half = toUnits('0.000000005');
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n - 2n }), digits, (whole, places) => {
      const given = `${whole}.${places}`;
      const shown = formatAmount(given);
      if (shown.startsWith('< ')) expect(units(given)).toBeLessThan(half);
      else if (shown.startsWith('≈ ')) {
        const off = units(given) - units(shown.slice(2));
        expect([off !== 0n, off <= half, off >= -half]).toEqual([true, true, true]);
      } else expect(units(shown)).toBe(units(given));
      expect(units(formatExact(given))).toBe(units(given));
    }),
    { numRuns: 1_000 },
  );
});

const TXHASHES = [`0x${'0'.repeat(63)}1`, 'nullable9', '0x00e', 'NaNo', '-_7aB', 'n', '10', '!~', 'x'.repeat(256)];
/** What a gateway, or an operator, may give instead of a transaction. */
const NO_TXHASHES = [
  ...['null', 'NULL', '"null"', '<nil>', 'none', 'NaN', 'undefined', '[undefined]', 'unknown', '(empty)', 'false'],
  ...['true', 'error', 'error:timeout', 'failed', 'failure', 'pending', 'in_progress', 'processing', 'n/a', 'ok'],
  ...['success', '--', '...', '?', '{}', '[]', '0', '0.0', '-0', '0x', '0x000', `0x${'0'.repeat(64)}`, '0'.repeat(64)],
  ...['', 'a b', 'é', 'x'.repeat(257), 'a\n', 1],
];

it.each<[string, z.ZodType, good: readonly unknown[], bad: readonly unknown[]]>([
  [
    'payoutId',
    payoutIdField,
    ['a', 'A-Z+/=-:.,_09', 'x'.repeat(64)],
    ['', 'a b', 'a~', 'a%', 'a|b', 'é', 'x'.repeat(65), 'a\n', 7],
  ],
  ['gatewayId', txhashField, TXHASHES, NO_TXHASHES],
  ['platformId', platformIdField, [1, 999], [0, -1, 1.5, '1', 2 ** 53]],
])('%s has its characters and length', (_, schema, good, bad) => {
  expect(good.filter((value) => !accepts(schema, value))).toEqual([]);
  expect(bad.filter((value) => accepts(schema, value))).toEqual([]);
});

it.each([
  ['https://gateway.example/api/', 'https://gateway.example/api'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
  ['http://127.1/x', 'http://127.0.0.1/x'],
])('a base URL %s is normalised to %s', (text, url) => {
  expect(baseUrlField.parse(text)).toBe(url);
});

it.each([
  ...['gateway.example', 'http://gateway.example', 'http://localhost.example', 'http://127.0.0.1.example'],
  ...['https://user@gateway.example', 'https://gateway.example?a=1', 'https://gateway.example#a', 7],
])('a base URL %s is refused', (text) => {
  expect(accepts(baseUrlField, text)).toBe(false);
});

it('a base URL is shown without its password', () => {
  const baseUrl = 'https://u:hunter2@g.example';
  expect(() => parseInput(z.object({ baseUrl: baseUrlField }), { baseUrl })).toThrow(
    'baseUrl: must not contain a user name or password (got "https://g.example")',
  );
});

describe('parseInput', () => {
  const schema = z.strictObject({ amount: amountField, platformId: platformIdField, nested: z.json().optional() });
  const problems = (input: unknown): readonly Problem[] => {
    try {
      parseInput(schema, input);
      return [];
    } catch (error) {
      return (error as InvalidInputError).problems;
    }
  };

  it('names each field, the rule that it breaks, and the value as it was given', () => {
    expect(problems({ amount: 12.5, platformId: 'x', extra: 1 })).toEqual([
      { field: 'amount', message: 'must be a decimal string such as "12.5" (a number would lose digits) (got 12.5)' },
      { field: 'platformId', message: 'must be a whole number (got "x")' },
      { field: 'extra', message: 'is not a known field' },
    ]);
    expect(problems({ platformId: 7 })).toEqual([{ field: 'amount', message: 'is missing' }]);
    for (const amount of ['0.000', '0', '1.0E-5', 'x', ''])
      expect(problems({ amount, platformId: 7 })[0]?.message).toContain(`(got ${JSON.stringify(amount)})`);
  });
});

it('what is shown of a time and of durations', () => {
  expect(formatTimeUtc('2030-01-31T09:00:00.123Z')).toBe('2030-01-31 09:00:00 UTC');
  const durations = [59_999, 60_000, 3_600_000, 100_000_000].map(formatDuration);
  expect(durations).toEqual(['59 s', '1 min', '1 h 0 min', '1 d 3 h']);
});

it('what is shown of a log line is nothing but text, also once a viewer has read its JSON', () => {
  const line = `${JSON.stringify({ msg: 'a\u001b[2J\u0007\r\b\u202e\u0085\ud800', path: 'C:\\u001b\\temp', n: 1 })}\n`;
  const plain = toPlainLog(line);
  expect(plain.endsWith('}\n')).toBe(true);
  expect(plain.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/u);
  const msg = 'a\\u{1b}[2J\\u{7}\\u{d}\\u{8}\\u{202e}\\u{85}\\u{d800}';
  expect(JSON.parse(plain)).toEqual({ msg, path: 'C:\\u001b\\temp', n: 1 });
});
