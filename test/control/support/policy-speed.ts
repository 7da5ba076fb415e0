import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import type { SpendEvent } from '../../../src/ledger/control-record.js';
import { PLATFORM } from './signed.js';
import { PolicyRig, TestClock } from './policy-rig.js';

/** Prints what a policy costs the processor: see policy-speed.slow.test.ts. */

/** Windows from an hour to a day, every other one by address. */
function windows(count: number, limit: string): Policy {
  const rules = Array.from({ length: count }, (_, number) => ({
    ...{ name: `rule-${number}`, when: { paymentId: ['6'] }, over: 'wait' },
    cap: { amount: limit, within: `${(number % 24) + 1}h`, ...(number % 2 === 0 ? {} : { per: 'address' }) },
  }));
  return parsePolicy({ version: '1', platformId: String(PLATFORM), default: 'send', rules });
}

/** Of the processor's time, ms for each of `count`: how busy the machine is beside it changes little. */
function costOfEach(count: number, run: () => void) {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / count;
}

/** Sent and accepted, one a second. */
function sendsOf(clock: TestClock, count: number): SpendEvent[] {
  return Array.from({ length: count }).flatMap((_, number): SpendEvent[] => {
    clock.pass(1_000);
    const [at, id, payoutId] = [clock.wallNow(), `p${number} 1 t`, `p${number}`];
    const spend = {
      id,
      payoutId,
      attempt: 1,
      paymentId: 6,
      amount: '12.5',
      addressTo: `w${number % 5_000}`,
      inFlightMs: 0,
    };
    return [
      { kind: 'begun', spend, at },
      { kind: 'accepted', id, at },
    ];
  });
}

/** Of loading each of `count` sends under 50 rules. */
function costOfLoading(count: number) {
  const clock = new TestClock();
  const sends = sendsOf(clock, count);
  const busy = new PolicyRig(clock, windows(50, '100000000'));
  busy.journal.takeSpends = () => sends.splice(0);
  return costOfEach(count, () => {
    busy.authority.takeOver([]);
    if (busy.askFor('q0', '1') !== 'send') throw new Error('the windows have room for it');
  });
}

const HOUR = 3_600;
for (let warmUp = 0; warmUp < 5; warmUp++) costOfLoading(HOUR);
const [hour, day] = [costOfLoading(HOUR), costOfLoading(24 * HOUR)];

const clock = new TestClock();
const full = new PolicyRig(clock, windows(4, '70'));
full.authority.takeOver(sendsOf(clock, 1));

/** Of asking for payouts with these numbers, which wait. */
function costOfAsking(from: number, count: number) {
  const ask = (number: number) => full.askFor(`q${number}`, '60', { addressTo: 'w' });
  if (ask(from) === 'send') throw new Error('the windows have no room for it');
  return costOfEach(count, () => Array.from({ length: count }, (_, index) => ask(from + index)));
}

const few = costOfAsking(0, 1_000);
costOfAsking(1_000, 99_000);
const [many, between] = [costOfAsking(100_000, 1_000), costOfAsking(50_000, 1_000)];
process.stdout.write(JSON.stringify({ hour, day, few, many, between }));
