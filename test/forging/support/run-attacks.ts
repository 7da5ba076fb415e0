import { expect, it } from '@jest/globals';
import type { Payout } from '../../../src/ledger/payout.js';
import { until } from '../../support/until.js';
import { isTampering, type Attack, type Reached, type Target } from './attack.js';
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
const reachedOf = ({ from = 'queued' }: Attack) => REACHED[from];

/** Which account each attack takes place in, and on which payout. */
export function plan(
  world: ForgingWorld,
  attacks: readonly Attack[],
  perAccount: number,
  firstAccount = 0,
): Attempted[] {
  const other = world.account(world.accounts.length - 1);
  return attacks.map((attack, index) => {
    const account = world.account(firstAccount + Math.floor(index / perAccount));
    const [payoutId, addressTo] = [`P-${index}`, `wallet-${reachedOf(attack)[2]}${index}`];
    const input = { payoutId, paymentId: 6, amount: '12.5', addressTo, ...attack.input };
    return { attack, target: { account, other, payoutId, input }, wanted: payoutId };
  });
}

/** The faults that bring payouts where their attacks begin. */
export function faultsOf(attempted: readonly Attempted[]): Parameters<ForgingWorld['sandbox']['setFaults']>[0] {
  const of = (reached: Reached): string[] =>
    attempted.filter(({ attack }) => attack.from === reached).map(({ target }) => target.input.addressTo);
  return [
    ...of('rejected').map((address) => ({ kind: 'reject', addresses: [address], message: 'no' }) as const),
    ...of('unknown').map((address) => ({ kind: 'drop-after', addresses: [address] }) as const),
    // One attempt each: a payment that the attacker brings about then is in the book.
    ...of('not sent').map((address) => ({ kind: 'drop-before', addresses: [address], times: 1 }) as const),
  ];
}

export async function enqueueTargets(attempted: readonly Attempted[]): Promise<void> {
  for (const { attack, target } of attempted) {
    const { account, payoutId, input } = target;
    await account.enqueue(input, attack.sign);
    if (attack.from !== 'cancelled') continue;
    await account.ledger.change({ payoutId, from: 'queued', to: 'cancelled', by: 'olga', reason: 'no' });
  }
}

/** Waits until no attack is late any more. @param isLate - with its state, where it is */
async function untilNone(
  attempted: readonly Attempted[],
  isLate: (each: Attempted) => Promise<string | false>,
  timeoutMs?: number,
): Promise<void> {
  let late: readonly string[] = [];
  const isOver = async (): Promise<boolean> => {
    const found = await Promise.all(attempted.map(async (each) => [each.attack.name, await isLate(each)] as const));
    late = found.flatMap(([name, state]) => (state === false ? [] : [`${name} (${state})`]));
    return late.length === 0;
  };
  await until(() => `decided: ${late.join(', ')}`, isOver, timeoutMs);
}

export async function untilReached(attempted: readonly Attempted[]): Promise<void> {
  await untilNone(attempted, async ({ attack, target }) => {
    const { state } = await target.account.payout(target.payoutId);
    return state !== reachedOf(attack)[0] && state;
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

const SETTLED: readonly string[] = ['completed', 'held', 'failed', 'rejected', 'unknown', 'cancelled'];

/** Waits until the attacks have come to a state, and the honest payouts are paid where nothing stops them. */
async function untilDecided(attempted: readonly Attempted[]): Promise<void> {
  const going = attempted.filter(({ attack }) => attack.expect !== 'stopped');
  const isLate = async ({ attack, target: { account }, wanted }: Attempted): Promise<string | false> => {
    const { state } = await account.payout('honest');
    if (state !== 'completed') return `the honest one is ${state}`;
    if (attack.expect === 'waits') return false;
    const found = String((await account.ledger.get(wanted))?.state);
    return !SETTLED.includes(found) && found;
  };
  await untilNone(going, isLate, 45_000);
}

/** That an attack came to what its row says. */
async function expectOutcome(world: ForgingWorld, { attack, target, wanted }: Attempted): Promise<void> {
  const { account, payoutId, input } = target;
  const { expect: expected } = attack;
  world.judge(account);
  const payout = await account.ledger.get(wanted);
  const paid = world.paidTo(account).filter((address) => address === input.addressTo).length;
  if (wanted !== payoutId) expect(paid).toBeLessThanOrEqual(1);
  else expect(paid).toBe(expected === 'paid as signed' ? 1 : reachedOf(attack)[1]);
  if (expected === 'paid as signed') return;
  if (expected === 'waits') {
    expect(payout?.state).toBe('queued');
  } else if (expected === 'stopped') {
    await until('it objects', async () => (await account.redis.hlen(account.keys.objections)) === 1);
    expect((await account.payout('honest')).state).toBe('queued');
    expect(paid).toBe(1);
  } else {
    expect({ state: payout?.state, reason: payout?.held?.reason }).toEqual({ state: 'held', reason: expected });
    const told = (await account.tamperings()).filter((event) => event.payoutId === wanted);
    if (isTampering(expected)) expect(told[0]?.reason).toContain(`${expected}:`);
    else expect(told).toEqual([]);
  }
}

/** A test of each attack, and of what was paid in all. @param find - what was set up before */
export function testAttacks(
  attacks: readonly Attack[],
  find: () => { readonly world: ForgingWorld; readonly attempted: readonly Attempted[] },
): void {
  it('every attack comes to an end', async () => {
    await untilDecided(find().attempted);
  });

  it.each(attacks.map((attack, index) => ({ ...attack, index })))('$name: $expect', async ({ index }) => {
    const { world, attempted } = find();
    await expectOutcome(world, attempted[index] as Attempted);
  });

  it('nothing else was paid in any account', () => {
    const { world } = find();
    for (const account of world.accounts) world.judge(account);
  });
}
