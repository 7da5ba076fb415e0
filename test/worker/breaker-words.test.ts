import { expect, it } from '@jest/globals';
import { readBlockedReason } from '../../src/worker/breaker.js';

it.each([
  'Account blocked',
  'your IP is on a block list',
  'Blocking in effect',
  'BAN',
  'banned for a day',
  'suspend',
  'This account is suspended.',
  'wallet locked',
  'funds frozen',
  'API disabled',
  'key deactivated',
  'Too Many Requests',
  'rate limit reached',
  'rate-limited',
  'ratelimit',
  'limit exceeded',
])('"%s" looks like a block of the account', (message) => {
  expect(readBlockedReason(message)).toBe(`the gateway's answer looks like a block: ${message}`);
});

it.each([
  'blockchain is congested',
  'wrong address',
  'bank unknown',
  'unlocked wallet needed',
  'the amount exceeds the limit',
  'corporate limits apply',
  'insufficient balance',
  '',
])('"%s" is a fault of one payout', (message) => {
  expect(readBlockedReason(message)).toBeUndefined();
});
