import { beforeEach, expect, it } from '@jest/globals';
import { silentLogger } from '../../../src/base/logger.js';
import { publishLoaded } from '../../../src/control/worker/account-policy.js';
import { HoldReleaser } from '../../../src/control/worker/hold-releaser.js';
import type { HeldFor, Hold, Payout } from '../../../src/ledger/payout.js';
import { HOUR_MS } from '../support/signed.js';
import { HOURLY, policyOf, PolicyRig, TestClock } from './support.js';

const WAITS = { kind: 'policy', reason: 'wait', rule: 'hour', message: 'm' } as const;

let clock: TestClock;
let rig: PolicyRig;
let payouts: Map<string, Payout>;
let marked: string[];
let done: string[];
let releaser: HoldReleaser;

const change = (payoutId: string, given: Partial<Payout>): void => {
  payouts.set(payoutId, { ...(payouts.get(payoutId) ?? rig.payout(payoutId, '0')), ...given });
};
const hold = (payoutId: string, amount: string, held: HeldFor = WAITS): void => {
  payouts.set(payoutId, rig.payout(payoutId, amount, { state: 'held', held }));
};
const does = async (what: string): Promise<void> => Promise.resolve(void done.push(what));

beforeEach(async () => {
  clock = new TestClock();
  rig = new PolicyRig(clock, policyOf(HOURLY));
  payouts = new Map();
  [marked, done] = [[], []];
  (await rig.begin(rig.payout('spent', '60')))?.('accepted');
  const held = (): Payout[] => [...payouts.values()].filter(({ state }) => state === 'held');
  const runtime: ConstructorParameters<typeof HoldReleaser>[0] = {
    senderLedger: {
      readSpends: async () => Promise.resolve([]),
      holdPayout: async (payoutId: string, _attempt: number, given: Hold) => {
        change(payoutId, { held: given, state: 'held' });
        await does(`hold ${payoutId} ${given.rule ?? ''} ${given.reason}`);
        return true;
      },
    },
    ledger: {
      change: async ({ payoutId, from, to }) => {
        change(payoutId, { state: to });
        await does(`${payoutId} ${from} ${to}`);
      },
    },
    relay: { tryDeliver: async (state, payoutIds) => does(`job ${state} ${payoutIds.join(' ')}`) },
    ...{ journal: rig.journal, clock, logger: silentLogger },
  };
  releaser = new HoldReleaser(runtime, rig.authority, {
    read: async (payoutId) => Promise.resolve(payouts.get(payoutId)),
    held: async () => Promise.resolve({ payouts: held(), next: undefined }),
    queued: async () => Promise.resolve({ payouts: [], next: undefined }),
    marked: async () => Promise.resolve([...marked]),
    unmark: async (payoutIds) => {
      marked = [];
      for (const payoutId of payoutIds) await does(`unmark ${payoutId}`);
    },
  });
});

/** What a check does, after a takeover and what happened then. */
async function checked(meanwhile: () => void = () => undefined): Promise<string[]> {
  await releaser.takeOver();
  meanwhile();
  done = [];
  await releaser.check();
  return done;
}
const released = (payoutId: string): string[] => [`${payoutId} held queued`, `job queued ${payoutId}`];

it('forms the lines of a takeover in the order of the holds, releases in that order, and skips who is gone', async () => {
  for (const [payoutId, amount] of Object.entries({ large: '80', gone: '90', small: '20' })) hold(payoutId, amount);
  expect(await checked(() => void rig.ask(rig.payout('late', '1')))).toEqual([]);
  expect(rig.ask(rig.payout('late', '1'))).toMatch(/190 are wanted by payouts before it/);
  change('gone', { state: 'cancelled' });
  clock.pass(HOUR_MS + 2_000);
  await releaser.check();
  await releaser.check();
  expect(done).toEqual([...released('large'), ...released('small')]);
});

it('unmarks what was marked before it looks: what is said in between marks it once more', async () => {
  hold('p', '10', { kind: 'policy', reason: 'approve', rule: 'old', message: 'm', needs: { by: 'x', persons: 1 } });
  expect(await checked(() => (marked = ['p']))).toEqual(['unmark p', ...released('p')]);
});

it('finds what another process held meanwhile, and touches nothing that a signature holds', async () => {
  hold('forged', '10', { kind: 'signature', reason: 'bad_signature', message: 'm' });
  const meanwhile = (): void => {
    hold('stray', '10');
    marked = ['forged'];
  };
  expect(await checked(meanwhile)).toEqual(['unmark forged', ...released('stray')]);
});

it('judges everything by a policy that was read again, and counts what is held, by rule and verdict', async () => {
  hold('refused', '10', { kind: 'policy', reason: 'refuse', rule: 'gone', message: 'm' });
  hold('waits', '80');
  const tight = policyOf({ ...HOURLY, name: 'tight', cap: { amount: '70', within: '1h' } });
  const expected = [...released('refused'), 'hold waits tight refuse'];
  expect(await checked(() => (rig.current.policy = tight))).toEqual(expected);
  expect(releaser.held).toMatchObject([{ rule: 'tight', reason: 'refuse', count: 1 }]);
});

it('has rejections on disk before it holds for one, and those for which it holds nothing soon after', async () => {
  rig.authority.keepRejections = async () => does('keep');
  hold('p', '200', { ...WAITS, rule: 'old' });
  await releaser.check();
  expect(done).toEqual(['keep', 'hold p hour refuse', 'keep']);
});

it('each policy that was loaded is told, in their order, once Redis is there', async () => {
  const end = new AbortController();
  const loaded = [['a'], ['b', 'a'], []];
  let isDown = true;
  const sleep = async (): Promise<void> => {
    isDown = loaded.length === 2;
    if (loaded.length === 0) end.abort();
    return Promise.resolve();
  };
  const tell = async (hash: string, about: string): Promise<void> => {
    if (isDown) throw new Error('Redis is down');
    await does(`${hash} ${about}`);
  };
  const policy = { file: '/etc/payouts/policy.yaml', takeLoaded: () => loaded.shift() ?? [] };
  const runtime = { clock: { now: () => 0, wallNow: () => 0, sleep }, logger: silentLogger };
  await publishLoaded(policy, 'host:7', tell, runtime, end.signal);
  expect(done).toEqual(['a', 'b', 'a'].map((hash) => `${hash} policy.yaml, by host:7`));
});
