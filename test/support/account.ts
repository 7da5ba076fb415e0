import { randomInt } from 'node:crypto';

/** An account that no other test has: tests share one Redis, and each keeps to its own keys. */
export function newPlatformId() {
  return randomInt(1_000_000, 2 ** 40);
}

export function testRedisUrl() {
  const url = process.env['REDIS_URL'];
  if (url === undefined)
    throw new Error('REDIS_URL is not set: run the tests through jest, whose global setup does it');
  return url;
}

/** Payouts of one cent, to an address each. */
export const cents = (payoutIds: readonly string[]) =>
  payoutIds.map((payoutId) => {
    const [, prefix = '', number = ''] = /^(.*)-(\d+)$/.exec(payoutId) ?? [];
    const addressTo = `wallet-${prefix.toLowerCase()}${number}xxxxxxxxxxxxxxxxxxxxxxxxxxxx`;
    return { payoutId, paymentId: 1, amount: '0.01', addressTo };
  });

export const numbered = (count: number, prefix = 'P') =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index + 1}`);
