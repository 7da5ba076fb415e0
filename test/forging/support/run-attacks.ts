import { expect, it } from '@jest/globals';
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

/** Of a payout when the attacker comes: its state, how often it was paid, and what its address tells the gateway to do. */
const REACHED: Readonly<Record<Reached, readonly [state: Payout['state'], paid: number, mark: string]>> = {
  queued: ['queued', 0, 'pays'],
  cancelled: ['cancelled', 0, 'pays'],
  completed: ['completed', 1, 'pays'],
  failed: ['failed', 1, 'fails'],
  rejected: ['rejected', 0, 'rejects'],
  unknown: ['unknown', 1, 'unknowns'],
  'not sent': ['unknown', 0, 'drops'],
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
    const addressTo = `wallet-${REACHED[attack.from ?? 'queued'][2]}${index}`;
    const input = { payoutId, paymentId: 6, amount: '12.5', addressTo, ...attack.input };
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
  const once = of('not sent').map((address) => ({ kind: 'drop-before' as const, addresses: [address], times: 1 }));
  return [...rules, ...once];
}

export async function enqueueTargets(attempted: readonly Attempted[]): Promise<void> {
  for (const { attack, target } of attempted) {
    await target.account.enqueue(target.input, attack.sign);
    if (attack.from !== 'cancelled') continue;
    const { payoutId, account } = target;
    await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled', by: 'olga', reason: 'no' });
  }
}

/** Waits until nothing is late any more. */
async function untilNone(what: string, findLate: () => Promise<readonly string[]>, timeoutMs?: number): Promise<void> {
  let late: readonly string[] = [];
  await until(
    () => `${what}: ${late.join(', ')}`,
    async () => (late = await findLate()).length === 0,
    timeoutMs,
  );
}

export async function untilReached(attempted: readonly Attempted[]): Promise<void> {
  await untilNone('reached', async () => {
    const late: string[] = [];
    for (const { attack, target } of attempted) {
      const { state } = await target.account.payout(target.payoutId);
      if (state !== REACHED[attack.from ?? 'queued'][0]) late.push(`${attack.name} (${state})`);
    }
    return late;
  });
}

export async function carryOut(attempted: readonly Attempted[]): Promise<void> {
  for (const each of attempted) {
    const wanted = await each.attack.attack(each.target);
    if (typeof wanted === 'string') each.wanted = wanted;
  }
}

/** An honest payout in every account: paid beside the attacks, unless the account stops. */
export async function enqueueHonest(accounts: readonly ForgedAccount[], payoutId = 'honest'): Promise<void> {
  for (const account of accounts) await account.order(payoutId, '1');
}

const SETTLED: readonly unknown[] = ['completed', 'held', 'failed', 'rejected', 'unknown', 'cancelled'];

/** Waits until the attacks that end in a state have come to it, and the honest payouts are paid where nothing stops them. */
async function untilDecided(attempted: readonly Attempted[]): Promise<void> {
  const findLate = async (): Promise<string[]> => {
    const late: string[] = [];
    for (const { attack, target, wanted } of attempted.filter((each) => each.attack.expect !== 'stopped')) {
      const { state } = await target.account.payout('honest');
      if (state !== 'completed') late.push(`honest beside ${attack.name} (${state})`);
      if (attack.expect === 'waits') continue;
      const found = (await target.account.ledger.get(wanted))?.state;
      if (!SETTLED.includes(found)) late.push(`${attack.name} (${String(found)})`);
    }
    return late;
  };
  await untilNone('decided', findLate, 45_000);
}

/** The gateway's book against what honest producers signed: nothing else, nothing altered, nothing twice, nothing too early. */
export function judgeBook(world: ForgingWorld, { signed, platformId }: ForgedAccount): void {
  const bookOf = (payments: readonly Pick<Target['input'], 'paymentId' | 'amount' | 'addressTo'>[]) =>
    payments.map(({ paymentId, amount, addressTo }) => ({ paymentId, amount, addressTo }));
  const paid = bookOf(world.sandbox.payments(platformId));
  for (const payment of paid) expect(bookOf(signed)).toContainEqual(payment);
  const addresses = paid.map(({ addressTo }) => addressTo);
  expect(addresses).toEqual([...new Set(addresses)]);
  const { smallestGapMs, blocked } = world.sandbox.stats(platformId);
  if (smallestGapMs !== null) expect(smallestGapMs).toBeGreaterThanOrEqual(1_000);
  expect(blocked).toBe(false);
}

/** How often the gateway paid what a payout of the account is for. */
export function timesPaid(world: ForgingWorld, { account, input }: Pick<Target, 'account' | 'input'>): number {
  return world.sandbox.payments(account.platformId).filter(({ addressTo }) => addressTo === input.addressTo).length;
}

/** That an attack came to what its row says. */
async function expectOutcome(world: ForgingWorld, { attack, target, wanted }: Attempted): Promise<void> {
  const { account, payoutId } = target;
  judgeBook(world, account);
  const payout = await account.ledger.get(wanted);
  if (attack.expect === 'held') {
    expect({ state: payout?.state, reason: payout?.held?.reason }).toEqual({ state: 'held', reason: attack.reason });
    const told = (await account.tamperings()).filter((event) => event.payoutId === wanted);
    if (attack.isTampering === true) expect(told[0]?.reason).toContain(`${attack.reason ?? ''}:`);
    else expect(told).toEqual([]);
  }
  const paid = timesPaid(world, target);
  if (wanted !== payoutId) expect(paid).toBeLessThanOrEqual(1);
  else expect(paid).toBe(attack.expect === 'paid once as signed' ? 1 : REACHED[attack.from ?? 'queued'][1]);
  if (attack.expect === 'waits') expect(payout?.state).toBe('queued');
  if (attack.expect !== 'stopped') return;
  if (attack.reason === 'objection') {
    await until('it objects', async () => (await account.redis.hlen(account.keys.objections)) === 1);
  }
  expect((await account.payout('honest')).state).toBe('queued');
  expect(timesPaid(world, target)).toBe(1);
}

/** A test of each attack, and of what was paid in all. @param find - what was set up before */
export function testAttacks(
  attacks: readonly Pick<Attack, 'name' | 'expect'>[],
  find: () => { readonly world: ForgingWorld; readonly attempted: readonly Attempted[] },
): void {
  it('every attack comes to an end', async () => {
    await untilDecided(find().attempted);
  });

  it.each(attacks.map(({ name, expect: expected }, index) => ({ name, expected, index })))(
    '$name: $expected',
    async ({ index }) => {
      const each = find().attempted[index];
      if (each === undefined) throw new Error('Every attack has a target');
      await expectOutcome(find().world, each);
    },
  );

  it('nothing else was paid in any account', () => {
    const { world } = find();
    for (const account of world.accounts) judgeBook(world, account);
  });
}
