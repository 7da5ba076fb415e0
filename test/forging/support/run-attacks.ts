import { expect } from '@jest/globals';
import type { Payout } from '../../../src/ledger/payout.js';
import { until } from '../../support/until.js';
import type { Attack, Reached, Target } from './attack.js';
import type { ForgedAccount } from './forged-account.js';
import type { ForgingWorld } from './forging-world.js';

/** An attack and where it takes place. */
export interface Attempted {
  readonly attack: Attack;
  readonly target: Target;
  /** What the attacker wants to be paid. */
  wanted: string;
}

/** Addresses tell the gateway what to do: see {@link faultsOf}. */
const ADDRESS_MARKS: Partial<Record<Reached, string>> = {
  failed: 'fails',
  rejected: 'rejects',
  unknown: 'unknowns',
  'not sent': 'drops',
};
const REACHED_STATE: Readonly<Record<Reached, Payout['state']>> = {
  queued: 'queued',
  cancelled: 'cancelled',
  completed: 'completed',
  failed: 'failed',
  rejected: 'rejected',
  unknown: 'unknown',
  'not sent': 'unknown',
};

/** Which account each attack takes place in, and on which payout. */
export function plan(
  world: ForgingWorld,
  attacks: readonly Attack[],
  perAccount: number,
  firstAccount = 0,
): Attempted[] {
  return attacks.map((attack, index) => {
    const account = world.account(firstAccount + Math.floor(index / perAccount));
    const other = world.account(world.accounts.length - 1);
    const payoutId = `P-${index}`;
    const mark = ADDRESS_MARKS[attack.from ?? 'queued'] ?? 'pays';
    const input = { payoutId, paymentId: 6, amount: '12.5', addressTo: `wallet-${mark}${index}`, ...attack.input };
    return { attack, target: { account, other, payoutId, input }, wanted: payoutId };
  });
}

/** The faults that bring payouts where their attacks begin. */
export function faultsOf(attempted: readonly Attempted[]): Parameters<ForgingWorld['sandbox']['setFaults']>[0] {
  const of = (reached: Reached): string[] =>
    attempted.filter(({ attack }) => attack.from === reached).map(({ target }) => target.input.addressTo);
  const rules = [
    { kind: 'reject' as const, addresses: of('rejected'), message: 'no' },
    { kind: 'drop-after' as const, addresses: of('unknown') },
  ].filter(({ addresses }) => addresses.length > 0);
  // One attempt each: a payment that the attacker brings about then is in the book.
  return [
    ...rules,
    ...of('not sent').map((address) => ({ kind: 'drop-before' as const, addresses: [address], times: 1 })),
  ];
}

export async function enqueueTargets(attempted: readonly Attempted[]): Promise<void> {
  for (const { attack, target } of attempted) {
    await target.account.enqueue(target.input, attack.sign);
    if (attack.from !== 'cancelled') continue;
    await target.account.ledger.change({
      payoutId: target.payoutId,
      from: 'queued',
      to: 'cancelled',
      by: 'olga',
      reason: 'no',
    });
  }
}

export async function untilReached(attempted: readonly Attempted[]): Promise<void> {
  const late = new Set<string>();
  await until(
    () => `reached: ${[...late].join(', ')}`,
    async () => {
      late.clear();
      for (const { attack, target } of attempted) {
        const { state } = await target.account.payout(target.payoutId);
        if (state !== REACHED_STATE[attack.from ?? 'queued']) late.add(`${attack.name} (${state})`);
      }
      return late.size === 0;
    },
  );
}

export async function carryOut(attempted: readonly Attempted[]): Promise<void> {
  for (const each of attempted) {
    const wanted = await each.attack.attack(each.target);
    if (typeof wanted === 'string') each.wanted = wanted;
  }
}

/** An honest payout in every account: paid beside the attacks, unless the account stops. */
export async function enqueueHonest(accounts: readonly ForgedAccount[], payoutId = 'honest'): Promise<void> {
  for (const account of accounts) {
    await account.enqueue({
      payoutId,
      paymentId: 6,
      amount: '1',
      addressTo: `wallet-${payoutId}${account.platformId}`,
    });
  }
}

const SETTLED: readonly Payout['state'][] = ['completed', 'held', 'failed', 'rejected', 'unknown', 'cancelled'];

/** Waits until the attacks that end in a state have come to it, and the honest payouts are paid where nothing stops them. */
export async function untilDecided(attempted: readonly Attempted[], honest = 'honest'): Promise<void> {
  const waiting = new Set<string>();
  await until(
    () => `decided: ${[...waiting].join(', ')}`,
    async () => {
      waiting.clear();
      for (const { attack, target, wanted } of attempted) {
        if (attack.expect === 'stopped') continue;
        const { state } = await target.account.payout(honest);
        if (state !== 'completed') waiting.add(`honest beside ${attack.name} (${state})`);
        if (attack.expect !== 'held' && attack.expect !== 'paid once as signed') continue;
        const found = (await target.account.ledger.get(wanted))?.state;
        if (found === undefined || !SETTLED.includes(found)) waiting.add(`${attack.name} (${String(found)})`);
      }
      return waiting.size === 0;
    },
    45_000,
  );
}

/** The gateway's book against what honest producers signed: nothing else, nothing altered, nothing twice. */
export function judgeBook(world: ForgingWorld, account: ForgedAccount): void {
  const { signed, platformId } = account;
  const paid = world.sandbox
    .payments(platformId)
    .map(({ paymentId, amount, addressTo }) => ({ paymentId, amount, addressTo }));
  for (const payment of paid) {
    const { paymentId, amount, addressTo } = payment;
    expect(
      signed.map((each) => ({ paymentId: each.paymentId, amount: each.amount, addressTo: each.addressTo })),
    ).toContainEqual({
      ...{ paymentId, amount, addressTo },
    });
  }
  const addresses = paid.map(({ addressTo }) => addressTo);
  expect(addresses).toEqual([...new Set(addresses)]);
  const { smallestGapMs, blocked } = world.sandbox.stats(platformId);
  if (smallestGapMs !== null) expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
  expect(blocked).toBe(false);
}

/** How often the gateway paid what a payout of the account is for. */
export function timesPaid(world: ForgingWorld, { account, input }: Target): number {
  return world.sandbox.payments(account.platformId).filter(({ addressTo }) => addressTo === input.addressTo).length;
}

const PAID_BEFORE: Readonly<Record<Reached, number>> = {
  ...{ queued: 0, cancelled: 0, completed: 1, failed: 1, rejected: 0, unknown: 1, 'not sent': 0 },
};

/** That an attack came to what its row says. */
export async function expectOutcome(world: ForgingWorld, { attack, target, wanted }: Attempted): Promise<void> {
  const { account, payoutId } = target;
  judgeBook(world, account);
  const payout = await account.ledger.get(wanted);
  const before = PAID_BEFORE[attack.from ?? 'queued'];
  if (attack.expect === 'held') {
    expect({ state: payout?.state, reason: payout?.held?.reason }).toEqual({ state: 'held', reason: attack.reason });
    const told = (await account.tamperings()).filter((event) => event.payoutId === wanted);
    if (attack.isTampering === true) expect(told[0]?.reason).toContain(`${attack.reason ?? ''}:`);
    else expect(told).toEqual([]);
  }
  const paid = timesPaid(world, target);
  if (wanted !== payoutId) expect(paid).toBeLessThanOrEqual(1);
  else expect(paid).toBe(attack.expect === 'paid once as signed' ? 1 : before);
  if (attack.expect === 'waits') expect(payout?.state).toBe('queued');
}
