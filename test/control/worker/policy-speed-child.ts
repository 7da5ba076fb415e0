import type { SpendEvent } from '../../../src/ledger/control-record.js';
import type { Policy } from '../../../src/control/policy/policy.js';
import { PolicyAuthority } from '../../../src/control/worker/policy-authority.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { DOUBT_MS, PLATFORM_ID, policyOf, PolicyRig, TestClock } from './support.js';

/** What a policy of fifty rules costs the processor, ms. */
export interface PolicySpeed {
  /** To load a day in which something was sent in each second. */
  readonly loadMs: number;
  /** One decision after that. */
  readonly decideMs: number;
  /** With four rules, one decision behind 1,000 that wait for the same windows, behind 100,000, and of one that stands behind 50,000 of them. */
  readonly waitingMs: readonly number[];
}

const DAY_SECONDS = 86_400;

/** Windows from an hour to a day, every other one by address. */
function windows(count: number, limit: string): Policy {
  const rules = Array.from({ length: count }, (_, number) => ({
    ...{ name: `rule-${number}`, when: { paymentId: ['6'] }, over: 'wait' },
    cap: { amount: limit, within: `${(number % 24) + 1}h`, ...(number % 2 === 0 ? {} : { per: 'address' }) },
  }));
  return policyOf(...rules);
}

function dayOfSends(clock: TestClock): SpendEvent[] {
  return Array.from({ length: DAY_SECONDS }).flatMap((_, number): SpendEvent[] => {
    clock.pass(1_000);
    const [at, id] = [clock.wallNow(), `p${number} 1 t`];
    const about = { payoutId: `p${number}`, attempt: 1, paymentId: 6, amount: '12.5', addressTo: `w${number % 5_000}` };
    return [
      { kind: 'begun', spend: { id, ...about }, at },
      { kind: 'accepted', id, at },
    ];
  });
}

/** Of the processor's time: how busy the machine is beside it changes little. */
function costOf(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

function measureWindows(): Pick<PolicySpeed, 'loadMs' | 'decideMs'> {
  const clock = new TestClock();
  const events = dayOfSends(clock);
  const rig = new PolicyRig(clock, windows(50, '100000000'));
  const journal = new MemoryJournal();
  journal.takeSpends = () => events.splice(0);
  const about = { platformId: PLATFORM_ID, current: rig.current, journal, clock, doubtMs: DOUBT_MS };
  const authority = new PolicyAuthority(about, undefined);
  const decide = (number: number): void => {
    const { kind } = authority.permit(rig.payout(`q${number}`, '1', { addressTo: `w${number}` }));
    if (kind !== 'granted') throw new Error('the windows have room for it');
  };
  const loadMs = costOf(() => {
    authority.takeOver([]);
    decide(0);
  });
  const decisions = 1_000;
  const decideMs = costOf(() => {
    for (let number = 1; number <= decisions; number += 1) decide(number);
  });
  return { loadMs, decideMs: decideMs / decisions };
}

function measureLines(): PolicySpeed['waitingMs'] {
  const rig = new PolicyRig(new TestClock(), windows(4, '100'));
  const decide = (from: number, count = 1_000): number =>
    costOf(() => {
      for (let number = from; number < from + count; number += 1) {
        rig.authority.permit(rig.payout(`q${number}`, '60', { addressTo: 'wallet' }));
      }
    }) / count;
  decide(0);
  const few = decide(1_000);
  decide(2_000, 98_000);
  return [few, decide(100_000), decide(50_000)];
}

const measured: PolicySpeed = { ...measureWindows(), waitingMs: measureLines() };
process.stdout.write(JSON.stringify(measured));
