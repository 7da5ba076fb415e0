import { describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../src/base/clock.js';
import { call, withdrawFields, type Merchant, type Reply } from './support/independent-client.js';
import { runSandbox, SECRET_KEY } from './support/running-sandbox.js';

const BLOCKED = { result: 0, message: 'account blocked' };

function withdraw(merchant: Merchant, change: Parameters<typeof withdrawFields>[1] = {}): Promise<Reply> {
  return call(merchant, 'withdraw', withdrawFields(merchant, change));
}

describe('one withdrawal per second', () => {
  it('accepts withdrawals exactly 1000 ms apart', async () => {
    const { merchant, clock, sandbox } = await runSandbox();
    for (let index = 0; index < 5; index += 1) {
      clock.advance(1000);
      expect(await withdraw(merchant, { addressTo: `wallet${index}` })).toMatchObject({ result: 1 });
    }
    expect(sandbox.stats()).toMatchObject({ blocked: false, arrivals: 5, smallestGapMs: 1000, meanGapMs: 1000 });
  });

  it.each([990, 999, 999.999])('blocks the account at %d ms: that call and every later one fails', async (gapMs) => {
    const { merchant, clock, sandbox } = await runSandbox();
    await withdraw(merchant, { addressTo: 'first' });
    clock.advance(gapMs);
    expect(await withdraw(merchant, { addressTo: 'second' })).toEqual(BLOCKED);
    clock.advance(60_000);
    expect(await withdraw(merchant, { addressTo: 'third' })).toEqual(BLOCKED);
    expect(await call(merchant, 'balance', { platform_id: '1001' })).toEqual(BLOCKED);
    expect(sandbox.stats()).toMatchObject({ blocked: true, payments: 1, arrivals: 3 });
    expect(sandbox.stats().smallestGapMs).toBeCloseTo(gapMs, 6);
    expect(sandbox.arrivals()[1]).toMatchObject({ addressTo: 'second', amount: '10' });

    sandbox.unblock();
    clock.advance(1000);
    expect(await withdraw(merchant)).toMatchObject({ result: 1 });
  });

  it('counts a withdrawal that is refused for another reason', async () => {
    const { merchant, clock } = await runSandbox();
    expect(await withdraw(merchant, { amount: 'much' })).toMatchObject({ result: 0 });
    clock.advance(500);
    expect(await withdraw(merchant)).toEqual(BLOCKED);
  });

  it('applies to each account on its own, and not to other calls', async () => {
    const accounts = [1001, 1002].map((platformId) => ({ platformId, secretKey: SECRET_KEY }));
    const { merchant, sandbox } = await runSandbox({ accounts });
    const other = { ...merchant, platformId: 1002 };
    await withdraw(merchant);
    expect(await withdraw(other)).toMatchObject({ result: 1 });
    for (let index = 0; index < 3; index += 1) await call(merchant, 'balance', { platform_id: '1001' });
    await withdraw(other);
    expect(sandbox.stats(1001)).toMatchObject({ blocked: false, arrivals: 1, calls: { withdraw: 1, balance: 3 } });
    expect(sandbox.stats(1002)).toMatchObject({ blocked: true, arrivals: 2, smallestGapMs: 0 });
    expect(() => sandbox.stats()).toThrow('platformId: must be one of 1001, 1002');
  });

  it('enforces another gap if configured', async () => {
    const { merchant, clock, sandbox } = await runSandbox({ minGapMs: 50 });
    await withdraw(merchant);
    clock.advance(50);
    expect(await withdraw(merchant)).toMatchObject({ result: 1 });
    clock.advance(49);
    expect(await withdraw(merchant)).toEqual(BLOCKED);
    expect(sandbox.stats().blockedReason).toBe('two withdrawals arrived 49 ms apart, the minimum is 50 ms');
  });

  it('measures in real time when the request was received completely, not when it began', async () => {
    const { merchant, sandbox } = await runSandbox({ clock: systemClock, latencyAfterMs: 1 });
    await withdraw(merchant, { addressTo: 'first' });
    await delay(1010);
    expect(await withdraw(merchant, { addressTo: 'second' })).toMatchObject({ result: 1 });
    // Sent well after the previous one, but with less latency: network jitter does this to a sender that paces by sends.
    await delay(1010);
    sandbox.setFaults([{ kind: 'latency-before', delayMs: 600, addresses: ['slow'] }]);
    const slow = withdraw(merchant, { addressTo: 'slow' });
    await delay(1010);
    expect(sandbox.stats().blocked).toBe(false);
    expect(await withdraw(merchant, { addressTo: 'fast' })).toEqual(BLOCKED);
    expect(await slow).toMatchObject({ result: 1 });
    expect(sandbox.stats().smallestGapMs).toBeLessThan(1000);
  });
});

describe('payments made twice', () => {
  it('are reported per recipient and amount, in whatever notation', async () => {
    const { merchant, clock, sandbox } = await runSandbox();
    for (const [addressTo, amount] of [
      ['a', '5'],
      ['a', '5.0'],
      ['a', '6'],
      ['b', '5'],
    ] as const) {
      clock.advance(1000);
      await withdraw(merchant, { addressTo, amount });
    }
    const stats = sandbox.stats();
    expect(stats.paymentsPerAddress).toEqual({ a: 3, b: 1 });
    expect(stats.paymentsPerAddressAndAmount).toEqual([
      { addressTo: 'a', amount: '5', count: 2 },
      { addressTo: 'a', amount: '6', count: 1 },
      { addressTo: 'b', amount: '5', count: 1 },
    ]);
    const txhashes = sandbox
      .payments()
      .slice(0, 2)
      .map(({ txhash }) => txhash);
    expect(stats.duplicatePayments).toEqual([{ addressTo: 'a', amount: '5', txhashes }]);
  });
});
