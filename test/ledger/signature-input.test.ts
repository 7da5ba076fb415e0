import { describe, expect, it } from '@jest/globals';
import { payoutInputSchema } from '../../src/ledger/payout.js';
import { payoutInput } from '../producer/support/payout-input.js';

const SIGNED = {
  key: 'shop',
  signature: `${'a'.repeat(85)}A`,
  issuedAt: '2030-01-01T00:00:00.000Z',
  expiresAt: '2030-01-08T00:00:00.000Z',
};

function problemsOf(changes: object): string[] {
  const { error } = payoutInputSchema.safeParse({ ...payoutInput(), ...changes });
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`);
}

describe('a payout that was signed before', () => {
  it('keeps its signature in a field of its own', () => {
    const payout = payoutInputSchema.parse({ ...payoutInput(), ...SIGNED, requestedBy: 'Ann' });
    expect(payout).toEqual({
      ...payoutInput(),
      requestedBy: 'Ann',
      signed: { ...SIGNED, requestedBy: 'Ann' },
    });
  });

  it.each(['key', 'signature', 'issuedAt', 'expiresAt'])('needs %s where it has the others', (field) => {
    expect(problemsOf({ ...SIGNED, [field]: undefined })).toEqual([
      expect.stringMatching(`^${field}: is missing: of a`),
    ]);
  });

  it.each([
    [{ signature: SIGNED.signature.slice(1) }, /^signature: .*86 characters/],
    // The same 64 bytes to a lenient decoder.
    [{ signature: `${'a'.repeat(85)}B` }, /^signature: /],
    [{ signature: `${'a'.repeat(84)}+A` }, /^signature: /],
    [{ key: '-x' }, /^key: must be 1 to 32/],
    [{ issuedAt: '2030-01-01T00:00:00Z' }, /^issuedAt: must be a time with milliseconds, in UTC/],
    [{ issuedAt: '2030-01-01T01:00:00.000+01:00' }, /^issuedAt: /],
    [{ expiresAt: '2030-02-31T00:00:00.000Z' }, /^expiresAt: /],
    [{ expiresAt: SIGNED.issuedAt }, /^expiresAt: must be after issuedAt/],
    [{ notBefore: SIGNED.expiresAt }, /^notBefore: must be before expiresAt/],
  ])('is refused with %j', (changes, problem) => {
    expect(problemsOf({ ...SIGNED, ...changes })).toEqual([expect.stringMatching(problem)]);
  });
});

describe('what cannot be signed is refused of every payout', () => {
  const TEXTS = ['a\nb', 'a\u0000b', 'a\u0085b', 'a\u2028b', 'a\u2029b', 'a\ud800b', '\udc00'];
  const fields = ['payoutId', 'addressTo', 'symbol', 'reference', 'amount', 'notBefore', 'requestedBy', 'key'];

  it.each(fields.flatMap((field) => TEXTS.map((text) => [field, text] as const)))('%s %j', (field, text) => {
    expect(problemsOf({ [field]: text }).some((problem) => problem.startsWith(`${field}: `))).toBe(true);
  });
});
