import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { InvalidInputError, type Problem } from '../src/base/errors.js';
import {
  amountField,
  baseUrlField,
  parseInput,
  payoutIdField,
  platformIdField,
  toProblem,
  txhashField,
} from '../src/base/fields.js';

const accepts = (schema: z.ZodType, value: unknown): boolean => schema.safeParse(value).success;

describe('amount', () => {
  it.each([
    ['1', '1'],
    ['0.5', '0.5'],
    ['12.50', '12.5'],
    ['12.500000000000000000', '12.5'],
    ['100', '100'],
    ['100.0', '100'],
    ['0.000000000000000001', '0.000000000000000001'],
    ['999999999999999999999999999999.999999999999999999', '999999999999999999999999999999.999999999999999999'],
  ])('%s is normalised to %s', (text, amount) => {
    expect(amountField.parse(text)).toBe(amount);
  });

  it.each([
    '',
    '0',
    '0.0',
    '0.000000000000000000',
    '-1',
    '+1',
    '1e3',
    '1E-3',
    '.5',
    '5.',
    '01',
    '00.5',
    '1,5',
    '1_000',
    ' 1',
    '1 ',
    '1\n',
    '0x10',
    '١',
    'NaN',
    'Infinity',
    '1.2.3',
    '0.0000000000000000001',
    '1.0000000000000000000',
    '1'.repeat(31),
  ])('%j is refused', (text) => {
    expect(accepts(amountField, text)).toBe(false);
  });

  it.each([12.5, 1, 1n, null, undefined, ['1'], { amount: '1' }])(
    '%p is refused: only a string keeps every digit',
    (value) => {
      expect(accepts(amountField, value)).toBe(false);
    },
  );

  it('never changes the value, and equal values become equal strings', () => {
    const toUnits = (text: string): bigint => {
      const [whole = '', places = ''] = text.split('.');
      return BigInt(whole + places.padEnd(18, '0'));
    };
    const digits = (max: number) => fc.string({ unit: fc.constantFrom('0', '1', '9'), minLength: 1, maxLength: max });
    const amount = fc
      .tuple(fc.bigInt({ min: 0n, max: 10n ** 30n - 1n }), fc.option(digits(18)))
      .map(([whole, places]) => (places === null ? `${whole}` : `${whole}.${places}`));
    fc.assert(
      fc.property(amount, (text) => {
        fc.pre(toUnits(text) > 0n);
        const read = amountField.parse(text);
        expect(toUnits(read)).toBe(toUnits(text));
        expect(read).not.toMatch(/\.\d*0$|\.$/);
        expect(amountField.parse(read)).toBe(read);
      }),
      { numRuns: 2_000 },
    );
  });
});

const TXHASHES = [
  `0x${'0'.repeat(63)}1`,
  'nullable9',
  '0x00e',
  'errorful1',
  'NaNo',
  'falsetto',
  'Pending7gYkr3',
  '-_7aB',
  'n',
  '10',
];
/** What a gateway, or an operator, may give instead of a transaction. */
const NO_TXHASHES = [
  ...[
    'null',
    'NULL',
    '"null"',
    '<nil>',
    'nil',
    'none',
    'None',
    'NaN',
    'undefined',
    '[undefined]',
    'unknown',
    '(empty)',
  ],
  ...[
    'false',
    'true',
    'error',
    'Error',
    'error:timeout',
    'ERROR-7',
    'failed',
    'fail',
    'failure',
    'pending',
    'in_progress',
  ],
  ...['processing', 'n/a', 'N/A', 'na', 'ok', 'success', '-', '--', '...', '?', '{}', '[]', '0', '00', '0.0', '-0'],
  ...['0x', '0x0', '0x000', `0x${'0'.repeat(64)}`, '0'.repeat(64)],
];

describe('an error', () => {
  const schema = z.object({ amount: amountField, kind: z.enum(['a', 'b'], 'must be a or b') });

  it('shows the given value, not the normalised one', () => {
    for (const amount of ['0.000', '0', '1.0E-5', 'x', '']) {
      const parse = (): unknown => parseInput(schema, { amount, kind: 'a' });
      expect(parse).toThrow(`(got ${JSON.stringify(amount)})`);
    }
  });

  it('calls an absent field missing, whatever its rule is', () => {
    expect(() => parseInput(schema, {})).toThrow(/^amount: is missing; kind: is missing$/);
    expect(() => parseInput(schema, { amount: undefined, kind: null })).toThrow(
      /^amount: is missing; kind: .*got null/,
    );
  });

  it('shows no value where none was reported', () => {
    const issues = schema.safeParse({ amount: 'x', kind: 'c' }).error?.issues ?? [];
    const messages = issues.map((issue) => toProblem(issue).message);
    expect(messages).toEqual([expect.stringMatching(/^must be a decimal string .*no exponent$/), 'must be a or b']);
  });
});

describe('identifiers', () => {
  it.each([
    [
      'payoutId',
      payoutIdField,
      ['a', 'A-Z+/=-:.,_09', 'x'.repeat(64)],
      ['', 'a b', 'a~', 'a%', 'a|b', 'é', 'x'.repeat(65), 'a\n', 7],
    ],
    ['txhash', txhashField, ['0xabc', '!~', 'x'.repeat(256)], ['', 'a b', 'é', 'x'.repeat(257), 'a\n', 1]],
    ['txhash', txhashField, TXHASHES, NO_TXHASHES],
    ['platformId', platformIdField, [1, 999], [0, -1, 1.5, '1', 2 ** 53]],
  ] as const)('%s has its characters and length', (_, schema, good, bad) => {
    for (const value of good) expect([value, accepts(schema, value)]).toEqual([value, true]);
    for (const value of bad) expect([value, accepts(schema, value)]).toEqual([value, false]);
  });
});

describe('base URL', () => {
  it.each([
    ['https://gateway.example', 'https://gateway.example'],
    ['https://gateway.example/api/', 'https://gateway.example/api'],
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080'],
    ['http://127.1/x', 'http://127.0.0.1/x'],
    ['http://[::1]:1', 'http://[::1]:1'],
    ['http://localhost', 'http://localhost'],
  ])('%s is normalised to %s', (text, url) => {
    expect(baseUrlField.parse(text)).toBe(url);
  });

  it.each([
    'gateway.example',
    'http://gateway.example',
    'http://localhost.example',
    'http://127.0.0.1.example',
    'ftp://127.0.0.1',
    'https://user@gateway.example',
    'https://gateway.example?a=1',
    'https://gateway.example#a',
    '',
    7,
  ])('%s is refused', (text) => {
    expect(accepts(baseUrlField, text)).toBe(false);
  });

  it('does not show a password in it', () => {
    const read = (): unknown =>
      parseInput(z.object({ baseUrl: baseUrlField }), { baseUrl: 'https://u:hunter2@g.example' });
    expect(read).toThrow('baseUrl: must not contain a user name or password (got "https://g.example")');
  });
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

  it('returns the data as the schema normalises it', () => {
    expect(parseInput(schema, { amount: '1.0', platformId: 7 })).toEqual({ amount: '1', platformId: 7 });
  });

  it('names each field, the rule that it breaks, and the value', () => {
    expect(problems({ amount: 12.5, platformId: 'x', extra: 1 })).toEqual([
      { field: 'amount', message: 'must be a decimal string such as "12.5" (a number would lose digits) (got 12.5)' },
      {
        field: 'platformId',
        message: 'must be a whole number (got "x")',
      },
      { field: 'extra', message: 'is not a known field' },
    ]);
    expect(problems({})).toEqual([
      { field: 'amount', message: 'is missing' },
      { field: 'platformId', message: 'is missing' },
    ]);
  });

  it('throws one error with a code of its own', () => {
    const read = (): unknown => parseInput(schema, 'x');
    expect(read).toThrow(InvalidInputError);
    expect(read).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }));
  });

  it.each([
    ['a nested bigint', { deep: 1n }],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
  ])('shows any value, also %s', (_, nested) => {
    expect(problems({ amount: '1', platformId: 7, nested })).toMatchObject([{ field: 'nested' }]);
  });

  it('shows a circular value, and truncates a long one', () => {
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    expect(problems({ amount: loop, platformId: 7 })).toMatchObject([{ field: 'amount' }]);
    const [problem] = problems({ amount: 'x'.repeat(5_000), platformId: 7 });
    expect(problem?.message.length).toBeLessThan(300);
  });
});
