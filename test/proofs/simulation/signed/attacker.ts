import { formatIntent, intentOf } from '../../../../src/control/intents/intent.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { Random } from '../../../doubles/random.js';
import { newPayout, walletOf } from '../../../world/worker.js';
import {
  alterPayout,
  freeGatewayId,
  putPayout,
  removePayout,
  setFields,
  type WorldLedger,
} from '../../../world/world-ledger.js';
import type { Simulation } from '../simulation.js';
import { KEYS, PLATFORM_ID, signAct, type SimControl, storeAct } from './control.js';
import { signText } from '../../../control/support/sign-at-once.js';

interface Loot {
  readonly random: Random;
  readonly payouts: readonly Payout[];
  readonly acts: readonly string[];
}

type Strike = (all: WorldLedger, loot: Loot) => boolean;

const THIEF = { addressTo: 'wallet-thief', amount: '99' };

const DECIDE = 'has operators decide';

const ATTACKS: Readonly<Record<string, Strike>> = {
  'requeues a payout': altering(({ attempt }, { random }) => {
    const moved = [attempt, attempt, attempt - 1, attempt - 2, attempt + 1, attempt + random.whole(2, 200)];
    return { state: 'queued', attempt: Math.max(0, random.pick(moved)) };
  }),
  'requeues a payout as never sent': onPayout(({ gatewayId, act, ...rest }, all, { random }) => {
    removePayout(all, rest.payoutId);
    const kept = random.chance(0.5) && act !== undefined ? { act } : {};
    putPayout(all, { ...rest, ...kept, state: 'queued', attempt: 0 });
    if (gatewayId !== undefined) freeGatewayId(all, gatewayId);
  }),
  'alters a payout': altering((payout, { random }) => alter(payout, random)),
  'puts an old record back': putOldRecordBack,
  'deletes a record': onPayout(({ payoutId }, all) => {
    removePayout(all, payoutId);
  }),
  // The same payment again, under an id of its own.
  'copies a payout': onPayout((payout, all, { random }) => {
    const attempt = random.pick([0, payout.attempt]);
    putPayout(all, { ...payout, payoutId: newId(all), state: 'queued', attempt });
  }),
  'invents a payout': inventPayout,
  'ends a pause': (all, { random, acts }) =>
    endPause(all, () => (acts.length > 0 && random.chance(0.7) ? random.pick(acts) : undefined)),
  'attaches an act': altering(attachAct),
  [DECIDE]: (all, { random }) => {
    const [sending] = all.idsIn('sending');
    const payouts = all.payouts();
    if (payouts.length === 0) return false;
    const payoutId = sending ?? random.pick(payouts).payoutId;
    alterPayout(all, payoutId, { state: random.pick(['unknown', 'rejected', 'held'] as const) });
    setFields(all, all.connection.keys.payout(payoutId), { inFlightUntil: 0 });
    return true;
  },
  'ends objections': (all) => all.redis.remove(all.connection.keys.objections),
  'moves the sends': moveSends,
  'moves the lease': moveLease,
};
const DRAWN = Object.keys(ATTACKS);
const BREAK_THE_PACE = ['moves the sends', 'moves the lease'];

function onPayout(strike: (payout: Payout, all: WorldLedger, loot: Loot) => void): Strike {
  return (all, loot) => {
    const payouts = all.payouts();
    if (payouts.length === 0) return false;
    strike(loot.random.pick(payouts), all, loot);
    return true;
  };
}

function altering(change: (payout: Payout, loot: Loot) => Partial<Payout>): Strike {
  return onPayout((payout, all, loot) => {
    alterPayout(all, payout.payoutId, change(payout, loot));
  });
}

function alter(payout: Payout, random: Random): Partial<Payout> {
  const { signed } = payout;
  const { amount, addressTo } = THIEF;
  const resign = (change: (of: NonNullable<Payout['signed']>) => object): Partial<Payout> =>
    signed === undefined ? {} : { signed: { ...signed, ...change(signed) } };
  return random.pick<() => Partial<Payout>>([
    () => ({ amount }),
    () => ({ addressTo }),
    () => ({ amount, addressTo }),
    () => ({ symbol: 'USD' }),
    () => ({ paymentId: 8 }),
    () => ({
      addressTo,
      // The signature of a key that is in no keyring, under the name of one that is.
      ...resign((of) => ({
        signature: signText(formatIntent(intentOf(PLATFORM_ID, { ...payout, addressTo }, of)), KEYS.thief),
      })),
    }),
    () => resign(({ expiresAt }) => ({ expiresAt: new Date(Date.parse(expiresAt) + 600_000).toISOString() })),
  ])();
}

function putOldRecordBack(all: WorldLedger, { random, payouts }: Loot) {
  if (payouts.length === 0) return false;
  const old = random.pick(payouts);
  const state = random.chance(0.7) ? 'queued' : old.state;
  if (all.stateOf(old.payoutId) === undefined) putPayout(all, { ...old, state });
  else alterPayout(all, old.payoutId, { ...old, state, act: old.act });
  return true;
}

function inventPayout(all: WorldLedger, { random }: Loot) {
  const payouts = all.payouts();
  const like = payouts.length === 0 ? undefined : random.pick(payouts);
  const payoutId = newId(all);
  const addressTo = random.pick([THIEF.addressTo, walletOf(payoutId)]);
  const payout = { ...newPayout(payoutId), addressTo, notBefore: undefined, attempt: 0, requeueCount: 0 };
  const signed = like?.signed && random.chance(0.8) ? { signed: like.signed } : {};
  putPayout(all, { ...payout, ...signed, state: 'queued' });
  return true;
}

function newId(all: WorldLedger) {
  return `x${all.payoutIds().length + 1}`;
}

function endPause(all: WorldLedger, pickAct: () => string | undefined) {
  if (all.pausedReason === undefined) return false;
  const act = pickAct();
  setFields(all, all.connection.keys.ledger, { pausedReason: undefined, ...(act !== undefined && { resumeAct: act }) });
  return true;
}

function attachAct({ payoutId, attempt, createdAt: at }: Payout, { random, acts }: Loot): Partial<Payout> {
  const expiresAt = new Date(Date.parse(at) + 600_000).toISOString();
  const stated = { act: 'resend', payoutId, attempt: Math.max(1, attempt), reason: 'x' } as const;
  const forged = signAct({ ...stated, intent: '0'.repeat(64), by: 'ann', at, expiresAt }, KEYS.thief);
  return { act: acts.length > 0 && random.chance(0.8) ? random.pick(acts) : storeAct(forged).text, state: 'queued' };
}

function moveSends(all: WorldLedger, { random }: Loot) {
  const { sender, journals } = all.connection.keys;
  if (random.chance(0.5)) setFields(all, sender, { sends: Math.max(0, all.sendCount + random.pick([-2, -1, 1])) });
  if (random.chance(0.5)) setFields(all, sender, { last: random.pick(['', 't1', 't2', 'x']) });
  if (random.chance(0.3)) all.redis.remove(journals);
  if (random.chance(0.3)) setFields(all, sender, { unanswered: '' });
  return true;
}

function moveLease(all: WorldLedger, { random }: Loot) {
  const { lease } = all;
  if (lease === undefined) return false;
  const { sender } = all.connection.keys;
  const moved = random.pick([
    { owner: undefined, epoch: undefined, beat: undefined, released: undefined },
    ...[{ released: 1 }, { owner: 'thief' }, { epoch: lease.epoch + 1 }, { beat: 0 }],
  ]);
  setFields(all, sender, moved);
  if (random.chance(0.5)) setFields(all, sender, { unanswered: '' });
  if (random.chance(0.3)) setFields(all, sender, { inFlightMs: 0 });
  return true;
}

const KEPT_RECORDS = 40;
const RARE = ['readSender', 'renewLease', 'queued', 'findForgottenSends', 'readSending'];

export type Attacker = ReturnType<typeof openAttacker>;

export function openAttacker({ plan, world, redis }: Simulation, { random }: SimControl) {
  const { ledger } = redis;
  let payouts: readonly Payout[] = [];
  const acts = new Set<string>();
  const resumeActs = new Set<string>();
  let strikesLeft = random.whole(1, 12);

  const note = (what: string) => {
    strikesLeft -= 1;
    attacker.hasStruck = true;
    world.situations.meet('an attacker strikes');
    world.note(() => `ATTACKER ${what}`);
  };

  const strike = (name = random.pick(DRAWN), attack = ATTACKS[name]) => {
    if (!world.faultsOn || strikesLeft === 0) return;
    if (attack?.(ledger, { random, payouts, acts: [...acts] }) !== true) return;
    attacker.breaksPace ||= BREAK_THE_PACE.includes(name);
    note(name);
  };

  const look = () => {
    for (const payout of ledger.payouts()) {
      if (payout.act !== undefined) acts.add(payout.act);
      if (!payouts.includes(payout)) payouts = [...payouts, payout].slice(-KEPT_RECORDS);
    }
    const { resumeAct } = ledger;
    if (resumeAct === undefined) return;
    acts.add(resumeAct);
    resumeActs.add(resumeAct);
  };

  const attacker = {
    hasStruck: false,
    breaksPace: false,
    forge(payout: Payout | undefined) {
      if (payout === undefined || strikesLeft === 0 || !world.faultsOn || !random.chance(0.05)) return payout;
      note('forges a reply');
      return { ...payout, ...alter(payout, random) };
    },
  };

  for (let number = random.whole(0, 4); number > 0; number -= 1) {
    world.after(random.between(0, plan.faultsForMs), () => {
      strike();
    });
  }
  redis.onExecuted = (name) => {
    if (!world.faultsOn) return;
    look();
    if (resumeActs.size > 0 && ledger.pausedReason !== undefined && random.chance(0.3))
      strike('ends a pause with an act that was used', (all) => endPause(all, () => random.pick([...resumeActs])));
    else if (name === 'beginSend' && random.chance(0.1)) strike(DECIDE);
    else if (random.chance(RARE.includes(name) ? 0.002 : 0.06)) strike();
  };
  return attacker;
}
