import { parsePolicy, type Policy } from '../../../src/control/policy/policy.js';
import type { SpendEvent } from '../../../src/ledger/control-record.js';
import { PLATFORM } from '../support/signed.js';
import { PolicyRig, TestClock } from './support.js';

/** What a policy costs the processor, ms. */
export interface PolicySpeed {
  /** With fifty rules: to load a day of a send a second, and one decision after that. */
  readonly loadMs: number;
  readonly decideMs: number;
  /** With four rules, one decision behind 1,000 that wait, behind 100,000, and of one that stands behind 50,000. */
  readonly waitingMs: readonly number[];
}

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

/** Asks about payouts with these numbers. @returns what one costs */
function costOfAsking(rig: PolicyRig, amount: string, from: number, count: number, wallet?: string): number {
  const ask = (number: number): unknown =>
    rig.authority.permit(rig.payout(`q${number}`, amount, { addressTo: wallet ?? `w${number}` }));
  return costOf(() => Array.from({ length: count }, (_, index) => ask(from + index))) / count;
}

function measureWindows(): Pick<PolicySpeed, 'loadMs' | 'decideMs'> {
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
  const rig = new PolicyRig(clock, windows(50, '100000000'));
  rig.journal.takeSpends = () => day.splice(0);
  const loadMs = costOf(() => {
    rig.authority.takeOver([]);
    if (rig.ask(rig.payout('q0', '1')) !== 'send') throw new Error('the windows have room for it');
  });
  return { loadMs, decideMs: costOfAsking(rig, '1', 1, 1_000) };
}

function measureLines(): PolicySpeed['waitingMs'] {
  const rig = new PolicyRig(new TestClock(), windows(4, '100'));
  const ask = (from: number, count = 1_000): number => costOfAsking(rig, '60', from, count, 'wallet');
  ask(0);
  const few = ask(1_000);
  ask(2_000, 98_000);
  return [few, ask(100_000), ask(50_000)];
}

const measured: PolicySpeed = { ...measureWindows(), waitingMs: measureLines() };
process.stdout.write(JSON.stringify(measured));
