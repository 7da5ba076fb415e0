import { expect, it } from '@jest/globals';
import { policyOf, PolicyRig, TestClock } from './support.js';

const DAY = { name: 'day', when: { paymentId: ['6'] }, cap: { amount: '100', within: '24h' }, over: 'wait' };
const WALLET = {
  name: 'wallet',
  when: { paymentId: ['6'] },
  cap: { count: '4', within: '1h', per: 'address' },
  over: 'refuse',
};
const DOLLARS = { name: 'dollars', cap: { usd: '1000', within: '24h' }, over: 'wait' };

async function pay(rig: PolicyRig, payoutId: string, amount: string, addressTo: string): Promise<void> {
  (await rig.begin(rig.payout(payoutId, amount, { addressTo })))?.('accepted');
}

it('says of each window what is spent, what waits for room, and for whom', async () => {
  const rig = new PolicyRig(new TestClock(), policyOf(DAY, WALLET));
  await pay(rig, 'a', '30', 'x');
  await pay(rig, 'b', '12.5', 'y');
  await pay(rig, 'c', '20', 'y');
  rig.ask(rig.payout('waits', '40', { addressTo: 'z' }));
  expect(rig.authority.usage).toEqual([
    {
      ...{ rule: 'day', unit: 'amount', limit: '100', withinMs: 86_400_000, per: null, unknown: null },
      buckets: [{ bucket: '', spent: '62.5', wanted: '40', ratio: 0.625 }],
    },
    {
      ...{ rule: 'wallet', unit: 'count', limit: '4', withinMs: 3_600_000, per: 'address', unknown: null },
      buckets: [
        { bucket: 'y', spent: '2', wanted: '0', ratio: 0.5 },
        { bucket: 'x', spent: '1', wanted: '0', ratio: 0.25 },
      ],
    },
  ]);
});

it('shows the window of a rule that counts nothing yet, and ten addresses at most', async () => {
  const clock = new TestClock();
  const rig = new PolicyRig(clock, policyOf(DAY, WALLET));
  expect(rig.authority.usage.map(({ buckets }) => buckets)).toEqual([
    [{ bucket: '', spent: '0', wanted: '0', ratio: 0 }],
    [],
  ]);
  for (let number = 0; number < 12; number += 1) await pay(rig, `p${number}`, '1', `w${number}`);
  expect(rig.authority.usage[1]?.buckets).toHaveLength(10);
  clock.pass(3_600_000);
  expect(rig.authority.usage[1]?.buckets).toEqual([]);
});

it('says why it is not known what counts', async () => {
  const clock = new TestClock();
  const before = new PolicyRig(clock, policyOf());
  await pay(before, 'a', '10', 'x');
  const rig = new PolicyRig(clock, policyOf(DOLLARS));
  rig.lines.push(...before.lines);
  rig.restart();
  expect(rig.authority.usage[0]?.unknown).toBe('earlier sends of currency 6 have no rate in dollars');
});
