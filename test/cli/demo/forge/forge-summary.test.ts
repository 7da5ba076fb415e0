import { expect, it } from '@jest/globals';
import { LOOT, ORDERS } from '../../../../src/cli/demo/forge/forge-orders.js';
import { summariseForge } from '../../../../src/cli/demo/forge/forge-summary.js';
import type { ForgeView } from '../../../../src/cli/demo/forge/forge-view.js';
import { FORGERIES } from '../../../../src/cli/demo/forge/forgeries.js';
import { formatForge } from '../../../../src/cli/demo/forge/format-forge.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { Payment } from '../../../../src/sandbox/index.js';
import picocolors from 'picocolors';

/** The judgement over what the two accounts look like at the end; the demo itself is in the slow tests. */

type Pay = readonly [addressTo: string, amount: string];

const HONEST: readonly Pay[] = [
  [ORDERS.copied.addressTo, ORDERS.copied.amount],
  [ORDERS.repeated.addressTo, ORDERS.repeated.amount],
  [ORDERS.disowned.addressTo, ORDERS.disowned.amount],
];

function pay([addressTo, amount]: Pay, index: number): Payment {
  return { addressTo, amount, paymentId: 6, fee: '0', txhash: `tx-${index}`, acceptedAtMs: index, settlesAs: 1 };
}

function held(payoutId: string): [string, Payout] {
  const hold = { kind: 'signature', reason: 'bad_signature', message: 'no' } as const;
  return [payoutId, { payoutId, state: 'held', held: hold } as Payout];
}

function defended(change: Partial<ForgeView> = {}, pays: readonly Pay[] = HONEST): ForgeView {
  const attacked = [ORDERS.redirected, ORDERS.raised, LOOT.invented, ORDERS.repeated].map(({ payoutId }) => payoutId);
  return {
    payments: pays.map(pay),
    payouts: new Map([...attacked, LOOT.copyId].map(held)),
    tampered: new Set([ORDERS.redirected.payoutId]),
    refusedResumes: 1,
    belief: {
      disowned: { state: 'rejected', isOrderedAgain: false },
      pretended: { state: 'completed', verified: false, isBooked: false },
    },
    ...change,
  };
}

const STOLEN: readonly Pay[] = [
  [LOOT.address, ORDERS.redirected.amount],
  [ORDERS.raised.addressTo, LOOT.raisedAmount],
  [LOOT.invented.addressTo, LOOT.invented.amount],
  [ORDERS.waiting.addressTo, ORDERS.waiting.amount],
];
const robbed: ForgeView = {
  payments: [...HONEST, ...HONEST, ...STOLEN].map(pay),
  payouts: new Map(),
  tampered: new Set(),
  refusedResumes: 0,
  belief: {
    disowned: { state: 'rejected', isOrderedAgain: true },
    pretended: { state: 'completed', verified: undefined, isBooked: true },
  },
};

const judge = (withKeys: ForgeView, withoutKeys = robbed): string[] => [
  ...summariseForge({ withoutKeys, withKeys }, 1).problems,
];

it('is content when each attack succeeded without keys, and none with them', () => {
  const summary = summariseForge({ withoutKeys: robbed, withKeys: defended() }, 20_000);
  expect(summary).toMatchObject({ ok: true, problems: [] });
  expect(summary.attacks.map(({ withoutKeys }) => withoutKeys.succeeded)).toEqual(FORGERIES.map(() => true));
  expect(summary.attacks.map(({ withKeys }) => withKeys.succeeded)).toEqual(FORGERIES.map(() => false));
  expect(summary.attacks[0]?.withKeys.what).toBe('held: bad_signature, event tampering');
  expect(summary.attacks[1]?.withKeys.what).toBe('held: bad_signature');
});

it.each([...STOLEN, ...HONEST])('sees a payment to %s of %s that keys did not prevent', (...stolen) => {
  const problems = judge(defended({}, [...HONEST, stolen]));
  expect(problems.join('\n')).toContain('succeeded in spite of the keys');
  expect(problems.join('\n')).toContain(`With keys, ${stolen[1]} was paid to ${stolen[0]}`);
});

it('sees a payment that no attack explains', () => {
  expect(judge(defended({}, [...HONEST, ['nobody', '1']]))).toEqual([
    'With keys, 1 was paid to nobody: nobody ordered it.',
  ]);
});

it('sees that the shop booked what nobody signed', () => {
  const { belief } = defended();
  const pretended = { state: 'completed', verified: true, isBooked: true } as const;
  expect(judge(defended({ belief: { ...belief, pretended } }))).toHaveLength(1);
});

it('cannot judge what is neither paid nor held, nor a pause that nobody tried to pass', () => {
  expect(judge(defended({ payouts: new Map() }))).toHaveLength(5);
  expect(judge(defended({ refusedResumes: 0 }))).toEqual([
    "breaker's pause lifted: cannot be judged, with keys: not paid, and the worker did not refuse it.",
  ]);
});

it('misses honest payments: an account that pays nothing proves nothing', () => {
  expect(judge(defended({}, []))).toHaveLength(3);
});

it('is not content with attacks that failed without keys as well', () => {
  expect(judge(defended(), defended())).toHaveLength(FORGERIES.length);
});

it('prints each attack, both books and what went wrong', () => {
  const plain = picocolors.createColors(false);
  const good = formatForge(summariseForge({ withoutKeys: robbed, withKeys: defended() }, 20_000), plain);
  expect(good).toMatch(/^\nWith keys, only what the shop signed was paid, once \(20 s\)\.\n/);
  expect(good).toMatch(/ payout invented +777 paid to the thief +held: bad_signature\n/);
  expect(good).toContain('with keys: 3 payments, all as ordered\n');
  expect(good).toContain('without keys: 10 payments, 7 not as ordered\n');
  const bad = formatForge(summariseForge({ withoutKeys: robbed, withKeys: robbed }, 20_000), plain);
  expect(bad).toMatch(/^\nSomething went wrong \(20 s\):\n {2}address of a queued payout altered: succeeded/);
});
