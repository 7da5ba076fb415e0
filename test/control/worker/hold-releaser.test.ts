import { beforeEach, expect, it } from '@jest/globals';
import type { HeldFor, Hold, Payout } from '../../../src/ledger/payout.js';
import { silentLogger } from '../../../src/base/logger.js';
import { type HeldPayouts, HoldReleaser } from '../../../src/control/worker/hold-releaser.js';
import { policyOf, PolicyRig, TestClock } from './support.js';

const HOUR_MS = 3_600_000;
const HOURLY = { name: 'hour', when: { paymentId: ['6'] }, cap: { amount: '100', within: '1h' }, over: 'wait' };
const WAITS = { kind: 'policy', reason: 'wait', rule: 'hour', message: 'm' } as const;

let clock: TestClock;
let rig: PolicyRig;
let payouts: Map<string, Payout>;
let marked: string[];
let done: string[];
let watch: HoldReleaser;

beforeEach(async () => {
  clock = new TestClock();
  rig = new PolicyRig(clock, policyOf(HOURLY));
  payouts = new Map();
  [marked, done] = [[], []];
  (await rig.begin(rig.payout('spent', '60')))?.('accepted');
  const held = (): Payout[] => [...payouts.values()].filter(({ state }) => state === 'held');
  const source: HeldPayouts = {
    read: async (payoutId) => Promise.resolve(payouts.get(payoutId)),
    held: async () => Promise.resolve({ payouts: held(), next: undefined }),
    queued: async () => Promise.resolve({ payouts: [], next: undefined }),
    marked: async () => Promise.resolve([...marked]),
    unmark: async (payoutIds) => {
      done.push(...payoutIds.map((payoutId) => `unmark ${payoutId}`));
      marked = [];
      return Promise.resolve();
    },
  };
  const runtime: ConstructorParameters<typeof HoldReleaser>[0] = {
    senderLedger: {
      readSpends: async () => Promise.resolve([]),
      holdPayout: async (payoutId: string, _attempt: number, hold: Hold) => {
        done.push(`hold ${payoutId} ${hold.rule ?? ''} ${hold.reason}`);
        put(payoutId, '0', { held: hold, state: 'held' }, true);
        return Promise.resolve(true);
      },
    },
    ledger: {
      change: async ({ payoutId, from, to }) => {
        done.push(`${payoutId} ${from} ${to}`);
        put(payoutId, '0', { state: to }, true);
        return Promise.resolve();
      },
    },
    relay: {
      tryDeliver: async (state, payoutIds) => {
        done.push(`job ${state} ${payoutIds.join(' ')}`);
        return Promise.resolve();
      },
    },
    journal: rig.journal,
    clock,
    logger: silentLogger,
  };
  watch = new HoldReleaser(runtime, rig.authority, source);
});

function put(payoutId: string, amount: string, given: Partial<Payout>, keeps = false): void {
  const before = keeps ? payouts.get(payoutId) : undefined;
  payouts.set(payoutId, { ...(before ?? rig.payout(payoutId, amount)), ...given });
}

const hold = (payoutId: string, amount: string, held: HeldFor = WAITS): void => {
  put(payoutId, amount, { state: 'held', held });
};

it('forms the lines of a takeover in the order in which payouts were held, and releases in that order', async () => {
  hold('large', '80');
  hold('small', '20');
  await watch.takeOver();
  expect(rig.ask(rig.payout('late', '1'))).toMatch(/100 are wanted by payouts before it/);
  done = [];
  await watch.check();
  expect(done).toEqual([]);
  clock.pass(HOUR_MS + 2_000);
  await watch.check();
  expect(done).toEqual(['large held queued', 'job queued large', 'small held queued', 'job queued small']);
});

it('a payout that was cancelled keeps nobody waiting', async () => {
  hold('large', '80');
  hold('small', '20');
  await watch.takeOver();
  put('large', '80', { state: 'cancelled' }, true);
  done = [];
  await watch.check();
  expect(done).toEqual(['small held queued', 'job queued small']);
});

it('unmarks what was marked before it looks: what is said in between marks it once more', async () => {
  hold('p', '10', { kind: 'policy', reason: 'approve', rule: 'old', message: 'm', needs: { by: 'x', persons: 1 } });
  await watch.takeOver();
  done = [];
  marked = ['p'];
  await watch.check();
  expect(done).toEqual(['unmark p', 'p held queued', 'job queued p']);
});

it('finds what another process held meanwhile', async () => {
  await watch.takeOver();
  hold('stray', '10');
  await watch.check();
  expect(done).toEqual(['stray held queued', 'job queued stray']);
});

it('judges everything by a policy that was read again', async () => {
  hold('refused', '10', { kind: 'policy', reason: 'refuse', rule: 'gone', message: 'm' });
  hold('waits', '80');
  await watch.takeOver();
  done = [];
  rig.current.policy = policyOf({ ...HOURLY, name: 'tight', cap: { amount: '70', within: '1h' } });
  await watch.check();
  expect(done).toEqual(['refused held queued', 'job queued refused', 'hold waits tight refuse']);
});

it('touches nothing that a signature or the journal holds', async () => {
  hold('forged', '10', { kind: 'signature', reason: 'bad_signature', message: 'm' });
  await watch.takeOver();
  marked = ['forged'];
  await watch.check();
  expect(done).toEqual(['unmark forged']);
});

it('counts what is held, by rule and verdict', async () => {
  hold('a', '80');
  hold('b', '90');
  await watch.takeOver();
  await watch.check();
  // The first could be released then.
  expect(watch.held).toEqual([{ rule: 'hour', reason: 'wait', count: 2, since: Date.parse('2030-01-01T01:23:20Z') }]);
});

it('has rejections on disk before it holds for one, and those for which it holds nothing soon after', async () => {
  rig.authority.keepRejections = async () => {
    done.push('keep');
    return Promise.resolve();
  };
  hold('p', '200', { ...WAITS, rule: 'old' });
  await watch.check();
  expect(done).toEqual(['keep', 'hold p hour refuse', 'keep']);
});
