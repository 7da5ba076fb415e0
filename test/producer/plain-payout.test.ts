import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { payoutInputSchema } from '../../src/ledger/payout.js';
import { toPlainPayout } from '../../src/producer/plain-payout.js';
import { payoutInput } from './support/payout-input.js';

/** Of letters that some rule treats apart from the others. */
const odd = fc.string({
  unit: fc.constantFrom(...Array.from('aZ09+/=-:.,_ \t\n\u0000\u007f\u00a0é\u2028\ud800')),
  maxLength: 6,
});
const digits = fc.string({ unit: fc.constantFrom('0', '1', '9'), maxLength: 40 });
const amounts = fc
  .tuple(digits, fc.constantFrom('', '.', ',', '..', 'e'), digits)
  .map(([whole, point, places]) => `${whole}${point}${places}`);
const long = fc.tuple(
  fc.constantFrom(63, 64, 65, 199, 200, 201, 255, 256, 257),
  fc.constantFrom('a', ' ', 'é', '\u{1f4b6}'),
);
const texts = fc.oneof(
  odd,
  odd.map((text) => `invoice${text}7`),
  fc.string({ unit: 'binary' }),
  long.map(([length, end]) => 'a'.repeat(length - 1) + end),
  fc.constantFrom('.', '..', 'a/../b', 'a/./b', '__proto__', 'wallet:tag', 'wallet:', ':wallet'),
);
const numbers = fc.oneof(fc.integer({ min: -2, max: 9 }), fc.double(), fc.constantFrom(2 ** 53 - 1, 2 ** 53, 1e300));
const others = fc.constantFrom(undefined, null, true, '', [], {}, 7n, new Date(0), Symbol.iterator);
const values = fc.oneof(texts, amounts, numbers, others);

const NAMES = ['payoutId', 'paymentId', 'amount', 'addressTo', 'reference', 'batch'];
const OTHER_NAMES = ['symbol', 'priority', 'notBefore', 'metadata', 'requestedBy', 'key', 'toString', '__proto__', 'x'];

const changes = fc.array(
  fc.oneof(
    fc.tuple(fc.constantFrom('paymentId'), fc.oneof(numbers, values)),
    fc.tuple(fc.constantFrom('amount'), fc.oneof(amounts, values)),
    fc.tuple(fc.constantFrom('payoutId', 'addressTo', 'reference', 'batch'), texts),
    fc.tuple(fc.constantFrom(...NAMES, ...NAMES, ...OTHER_NAMES), values),
  ),
  { minLength: 1, maxLength: 3 },
);

/** A right payout with fields set, some to what its rules refuse. */
const inputs = fc.tuple(changes, fc.nat(9), fc.constantFrom(...NAMES)).map(([set, often, lacking]) => {
  const input = { ...payoutInput() } as Record<string, unknown>;
  for (const [name, value] of set) Object.defineProperty(input, name, { value, enumerable: true, configurable: true });
  if (often === 0) Reflect.deleteProperty(input, lacking);
  return input;
});

it('a payout that is accepted without the schema is one that the schema accepts as the same', () => {
  const seen = { plain: 0, refused: 0 };
  fc.assert(
    fc.property(fc.oneof(inputs, fc.anything()), (input) => {
      const plain = toPlainPayout(input);
      const parsed = payoutInputSchema.safeParse(input);
      if (!parsed.success) seen.refused += 1;
      if (plain === undefined) return;
      seen.plain += 1;
      expect([parsed.success, Object.entries(parsed.data ?? {})]).toEqual([true, Object.entries(plain)]);
    }),
    { numRuns: 20_000 },
  );
  // Of both there were enough to see a difference.
  expect(Math.min(seen.plain, seen.refused)).toBeGreaterThan(300);
});

it.each<[string, unknown]>([
  ['of its four fields', payoutInput()],
  ['with a reference and a batch', payoutInput({ reference: 'invoice 7', batch: 'october' })],
])('a payout %s needs no schema', (_, input) => {
  expect(toPlainPayout(input)).toEqual(input);
});

class Row {
  readonly payoutId = 'p';
  readonly paymentId = 6;
  readonly amount = '1';
  readonly addressTo = 'w';
}

it.each<[string, unknown]>([
  ['with another field', payoutInput({ symbol: 'USD' })],
  ['with a field that has no value', payoutInput({ priority: undefined })],
  ['with an inherited field', Object.assign(Object.create({ symbol: 'USD' }) as object, payoutInput())],
  ['of a class', new Row()],
  ['that is a list', [payoutInput()]],
  ['that is nothing', null],
])('a payout %s is left to the schema', (_, input) => {
  expect(toPlainPayout(input)).toBeUndefined();
});

it('a field that answers differently when it is read again is stored as it was checked', () => {
  const answers = ['12.5', '-1'];
  const input = { ...payoutInput() };
  Object.defineProperty(input, 'amount', { get: () => answers.shift(), enumerable: true });
  expect(toPlainPayout(input)?.amount).toBe('12.5');
});
