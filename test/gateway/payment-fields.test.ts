import { describe, expect, it } from '@jest/globals';
import type { z } from 'zod';
import { addressToField, orderIdField, paymentIdField, symbolField } from '../../src/gateway/payment-fields.js';

const accepts = (schema: z.ZodType, value: unknown): boolean => schema.safeParse(value).success;

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

it.each([
  ['orderId', orderIdField, ['a', 'A-Z+/=-:.,09', 'x'.repeat(64)], ['', 'a_b', 'a b', 'x'.repeat(65), 'a\n', 7]],
  ['symbol', symbolField, ['USD'], ['', 'usd', 'USDT', 'US', 'US1', 'USD\n', 'ÜSD']],
  ['paymentId', paymentIdField, [1, 2 ** 53 - 1], [0, -1, 1.5, '1', 2 ** 53, Number.NaN, null]],
] as const)('%s has the characters and the length that the API allows', (_, schema, good, bad) => {
  for (const value of good) expect([value, accepts(schema, value)]).toEqual([value, true]);
  for (const value of bad) expect([value, accepts(schema, value)]).toEqual([value, false]);
});
