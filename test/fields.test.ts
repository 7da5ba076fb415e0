import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { InvalidInputError, type Problem } from '../src/errors.js';
import {
  addressToField,
  amountField,
  baseUrlField,
  orderIdField,
  parseInput,
  payoutIdField,
  paymentIdField,
  platformIdField,
  symbolField,
  toProblem,
  txhashField,
} from '../src/fields.js';

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
  ])('%s is read as %s', (text, amount) => {
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

describe('address', () => {
  it.each([
    '1BoatSLRHtKNngkdXEeobR76b53LETtpyT',
    'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123456',
    'UQ-address:a comment with spaces',
    'addr:тест',
    'a:b:c',
    'x'.repeat(256),
  ])('%s is accepted as it is', (text) => {
    expect(addressToField.parse(text)).toBe(text);
  });

  it.each([
    ['', 'must not be empty'],
    [' addr', 'must not begin or end with a space'],
    ['addr:tag ', 'must not begin or end with a space'],
    ['ad dr', 'must be an address without spaces, or address:destinationTag'],
    ['адрес', 'must be an address without spaces, or address:destinationTag'],
    [':tag', 'must be an address without spaces, or address:destinationTag'],
    ['addr:', 'ends with a colon, but no destination tag follows'],
    ['addr:a\nb', 'must not contain control characters'],
    ['addr:\u2028', 'must not contain control characters'],
    ['addr:\ud800', 'must not contain control characters'],
    ['x'.repeat(257), 'must have at most 256 characters'],
  ])('%j is refused: %s', (text, rule) => {
    expect(addressToField.safeParse(text).error?.issues.map(({ message }) => message)).toContain(rule);
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
/** What a gateway, or an operator, may give where there is no transaction. */
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

  it('shows what was given, not what a rule made of it', () => {
    for (const amount of ['0.000', '0', '1.0E-5', 'x', '']) {
      const parse = (): unknown => parseInput(schema, { amount, kind: 'a' });
      expect(parse).toThrow(`(got ${JSON.stringify(amount)})`);
    }
  });

  it('says of a field that is not there that it is missing, whatever its rule is', () => {
    expect(() => parseInput(schema, {})).toThrow(/^amount: is missing; kind: is missing$/);
    expect(() => parseInput(schema, { amount: undefined, kind: null })).toThrow(
      /^amount: is missing; kind: .*got null/,
    );
  });

  it('claims nothing about a value that is not known', () => {
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
    ['orderId', orderIdField, ['a', 'A-Z+/=-:.,09', 'x'.repeat(64)], ['', 'a_b', 'a b', 'x'.repeat(65), 'a\n', 7]],
    ['symbol', symbolField, ['USD'], ['', 'usd', 'USDT', 'US', 'US1', 'USD\n', 'ÜSD']],
    ['txhash', txhashField, ['0xabc', '!~', 'x'.repeat(256)], ['', 'a b', 'é', 'x'.repeat(257), 'a\n', 1]],
    ['txhash', txhashField, TXHASHES, NO_TXHASHES],
    ['paymentId', paymentIdField, [1, 2 ** 53 - 1], [0, -1, 1.5, '1', 2 ** 53, Number.NaN, null]],
    ['platformId', platformIdField, [1, 999], [0, -1, 1.5, '1', 2 ** 53]],
  ] as const)('%s keeps to the characters and length of the document', (_, schema, good, bad) => {
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
  ])('%s is read as %s', (text, url) => {
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

  it('does not show a password that stands in it', () => {
    const read = (): unknown =>
      parseInput(z.object({ baseUrl: baseUrlField }), { baseUrl: 'https://u:hunter2@g.example' });
    expect(read).toThrow('baseUrl: must not hold a user name or password (got "https://g.example")');
  });
});

describe('parseInput', () => {
  const schema = z.strictObject({ amount: amountField, paymentId: paymentIdField, nested: z.json().optional() });
  const problems = (input: unknown): readonly Problem[] => {
    try {
      parseInput(schema, input);
      return [];
    } catch (error) {
      return (error as InvalidInputError).problems;
    }
  };

  it('gives back what the schema makes of it', () => {
    expect(parseInput(schema, { amount: '1.0', paymentId: 7 })).toEqual({ amount: '1', paymentId: 7 });
  });

  it('names each field, the rule that it breaks, and the value', () => {
    expect(problems({ amount: 12.5, paymentId: 'x', extra: 1 })).toEqual([
      { field: 'amount', message: 'must be a decimal string such as "12.5" (a number would lose digits) (got 12.5)' },
      {
        field: 'paymentId',
        message: 'must be a whole number, the currency id that the gateway lists under /currencies (got "x")',
      },
      { field: 'extra', message: 'is not a known field' },
    ]);
    expect(problems({})).toEqual([
      { field: 'amount', message: 'is missing' },
      { field: 'paymentId', message: 'is missing' },
    ]);
  });

  it('is one error that programs can tell by its code', () => {
    const read = (): unknown => parseInput(schema, 'x');
    expect(read).toThrow(InvalidInputError);
    expect(read).toThrow(expect.objectContaining({ code: 'INVALID_INPUT' }));
  });

  it.each([
    ['a nested bigint', { deep: 1n }],
    ['a function', () => 1],
    ['a symbol', Symbol('x')],
  ])('shows any value, also %s', (_, nested) => {
    expect(problems({ amount: '1', paymentId: 7, nested })).toMatchObject([{ field: 'nested' }]);
  });

  it('does not break on a value that holds itself, and cuts a long one short', () => {
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    expect(problems({ amount: loop, paymentId: 7 })).toMatchObject([{ field: 'amount' }]);
    const [problem] = problems({ amount: 'x'.repeat(5_000), paymentId: 7 });
    expect(problem?.message.length).toBeLessThan(300);
  });
});
