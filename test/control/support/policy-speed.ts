import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import type { SpendEvent } from '../../../src/ledger/control-record.js';
import { PLATFORM } from './signed.js';
import { PolicyRig, TestClock } from './policy-rig.js';

/** Prints what a policy costs the processor, ms: see policy-speed.slow.test.ts. */

/** Windows from an hour to a day, every other one by address. */
function windows(count: number, limit: string): Policy {
  const rules = Array.from({ length: count }, (_, number) => ({
    ...{ name: `rule-${number}`, when: { paymentId: ['6'] }, over: 'wait' },
    cap: { amount: limit, within: `${(number % 24) + 1}h`, ...(number % 2 === 0 ? {} : { per: 'address' }) },
  }));
  return parsePolicy({ version: '1', platformId: String(PLATFORM), default: 'send', rules });
}

/** Of the processor's time: how busy the machine is beside it changes little. */
function costOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function costOfAsking(rig: PolicyRig, from: number, count: number): number {
  const ask = (number: number): unknown => rig.authority.permit(rig.payout(`q${number}`, '60', { addressTo: 'w' }));
  return costOf(() => Array.from({ length: count }, (_, index) => ask(from + index))) / count;
}

const clock = new TestClock();
const day = Array.from({ length: 86_400 }).flatMap((_, number): SpendEvent[] => {
  clock.pass(1_000);
  const [at, id, payoutId] = [clock.wallNow(), `p${number} 1 t`, `p${number}`];
  const spend = { id, payoutId, attempt: 1, paymentId: 6, amount: '12.5', addressTo: `w${number % 5_000}` };
  return [
    { kind: 'begun', spend, at },
    { kind: 'accepted', id, at },
  ];
});
const busy = new PolicyRig(clock, windows(50, '100000000'));
busy.journal.takeSpends = () => day.splice(0);
const loadMs = costOf(() => {
  busy.authority.takeOver([]);
  if (busy.ask(busy.payout('q0', '1')) !== 'send') throw new Error('the windows have room for it');
});
const full = new PolicyRig(new TestClock(), windows(4, '100'));
const decideMs = [costOfAsking(busy, 1, 1_000)];
// With few that wait before it, with 100,000, and of one that stands behind 50,000.
for (const [from, count] of [
  [0, 1_000],
  [1_000, 99_000],
  [100_000, 1_000],
  [50_000, 1_000],
] as const)
  decideMs.push(costOfAsking(full, from, count));
process.stdout.write(JSON.stringify({ loadMs, decideMs }));
