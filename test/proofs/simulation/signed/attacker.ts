import { formatIntent, intentOf } from '../../../../src/control/intents/intent.js';
import { signText } from '../../../../src/control/keys/ed25519.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { Random } from '../../../doubles/random.js';
import { alterPayout, freeTxhash, putPayout, removePayout, setFields } from '../../../world/tamper.js';
import { newPayout, walletOf } from '../../../world/worker.js';
import type { WorldLedger } from '../../../world/world-ledger.js';
import type { Simulation } from '../simulation.js';
import { type SimControl, KEYS, PLATFORM_ID, signAct, storeAct } from './control.js';

type Loot = Readonly<{
  random: Random;
  payouts: readonly Payout[];
  acts: readonly string[];
  resumeActs: readonly string[];
}>;

type Attack = Readonly<{
  name: string;
  breaksPace?: true;
  strike: (all: WorldLedger, loot: Loot) => boolean;
}>;

const THIEF = { addressTo: 'wallet-thief', amount: '99' };

const haveOperatorsDecide: Attack = { name: 'has operators decide', strike: askOperators };

const ATTACKS: readonly Attack[] = [
  { name: 'requeues a payout', strike: altering((payout, { random }) => requeue(payout, random)) },
  { name: 'requeues a payout as never sent', strike: onPayout(requeueAsNew) },
  { name: 'alters a payout', strike: altering((payout, { random }) => alter(payout, random)) },
  { name: 'puts an old record back', strike: putOldRecordBack },
  { name: 'deletes a record', strike: onPayout(deleteRecord) },
  { name: 'copies a payout', strike: onPayout(copyPayout) },
  { name: 'invents a payout', strike: inventPayout },
  { name: 'ends a pause', strike: endPause },
  { name: 'attaches an act', strike: altering(attachAct) },
  haveOperatorsDecide,
  { name: 'ends objections', strike: endObjections },
  { name: 'moves the sends', strike: moveSends, breaksPace: true },
  { name: 'moves the lease', strike: moveLease, breaksPace: true },
];

function forgeReply(payout: Payout, random: Random): Payout {
  return { ...payout, ...alter(payout, random) };
}

/** What is done to any payout. */
function onPayout(strike: (payout: Payout, all: WorldLedger, loot: Loot) => void): Attack['strike'] {
  return (all, loot) => {
    const payouts = all.payouts();
    if (payouts.length === 0) return false;
    strike(loot.random.pick(payouts), all, loot);
    return true;
  };
}

function altering(change: (payout: Payout, loot: Loot) => Partial<Payout>): Attack['strike'] {
  return onPayout((payout, all, loot) => {
    alterPayout(all, payout.payoutId, change(payout, loot));
  });
}

function requeue({ attempt }: Payout, random: Random): Partial<Payout> {
  const moved = random.pick([attempt, attempt, attempt - 1, attempt - 2, attempt + 1, attempt + random.whole(2, 200)]);
  return { state: 'queued', attempt: Math.max(0, moved) };
}

function requeueAsNew({ txhash, act, ...rest }: Payout, all: WorldLedger, { random }: Loot) {
  removePayout(all, rest.payoutId);
  const kept = random.chance(0.5) && act !== undefined ? { act } : {};
  putPayout(all, { ...rest, ...kept, state: 'queued', attempt: 0 });
  if (txhash !== undefined) freeTxhash(all, txhash);
}

function alter(payout: Payout, random: Random): Partial<Payout> {
  const { signed } = payout;
  const [amount, addressTo] = [THIEF.amount, THIEF.addressTo];
  return random.pick<() => Partial<Payout>>([
    () => ({ amount }),
    () => ({ addressTo }),
    () => ({ amount, addressTo }),
    () => ({ symbol: 'USD' }),
    () => ({ paymentId: 8 }),
    // The signature of a key that is in no keyring, under the name of one that is.
    () => ({ addressTo, ...(signed === undefined ? {} : { signed: forge({ ...payout, addressTo }, signed) }) }),
    () =>
      signed === undefined
        ? {}
        : { signed: { ...signed, expiresAt: new Date(Date.parse(signed.expiresAt) + 600_000).toISOString() } },
  ])();
}

function forge(payout: Payout, signed: NonNullable<Payout['signed']>): NonNullable<Payout['signed']> {
  return { ...signed, signature: signText(formatIntent(intentOf(PLATFORM_ID, payout, signed)), KEYS.thief) };
}

function putOldRecordBack(all: WorldLedger, { random, payouts }: Loot) {
  if (payouts.length === 0) return false;
  const old = random.pick(payouts);
  const state = random.chance(0.7) ? 'queued' : old.state;
  if (all.stateOf(old.payoutId) === undefined) putPayout(all, { ...old, state });
  else alterPayout(all, old.payoutId, { ...old, state, act: old.act });
  return true;
}

function deleteRecord({ payoutId }: Payout, all: WorldLedger) {
  removePayout(all, payoutId);
}

/** The same payment again, under an id of its own. */
function copyPayout(payout: Payout, all: WorldLedger, { random }: Loot) {
  const attempt = random.pick([0, payout.attempt]);
  putPayout(all, { ...payout, payoutId: newId(all), state: 'queued', attempt });
}

function inventPayout(all: WorldLedger, loot: Loot) {
  const payouts = all.payouts();
  const like = payouts.length === 0 ? undefined : loot.random.pick(payouts);
  const payoutId = newId(all);
  const addressTo = loot.random.pick([THIEF.addressTo, walletOf(payoutId)]);
  const payout = { ...newPayout(payoutId), addressTo, notBefore: undefined, attempt: 0, requeueCount: 0 };
  const signed = like?.signed && loot.random.chance(0.8) ? { signed: like.signed } : {};
  putPayout(all, { ...payout, ...signed, state: 'queued' });
  return true;
}

function newId(all: WorldLedger) {
  return `x${all.payoutIds().length + 1}`;
}

function endPause(all: WorldLedger, { random, acts }: Loot) {
  if (all.pausedReason === undefined) return false;
  const act = acts.length > 0 && random.chance(0.7) ? random.pick(acts) : undefined;
  setFields(all, all.connection.keys.ledger, { pausedReason: undefined, ...(act !== undefined && { resumeAct: act }) });
  return true;
}

const endPauseAgain: Attack = {
  name: 'ends a pause with an act that was used',
  strike: (all, { random, resumeActs }) => {
    if (all.pausedReason === undefined || resumeActs.length === 0) return false;
    const { ledger } = all.connection.keys;
    setFields(all, ledger, { pausedReason: undefined, resumeAct: random.pick(resumeActs) });
    return true;
  },
};

function attachAct(payout: Payout, { random, acts }: Loot): Partial<Payout> {
  const at = payout.createdAt;
  const expiresAt = new Date(Date.parse(at) + 600_000).toISOString();
  const stated = {
    act: 'resend',
    payoutId: payout.payoutId,
    attempt: Math.max(1, payout.attempt),
    reason: 'x',
  } as const;
  const forged = signAct({ ...stated, intent: '0'.repeat(64), by: 'ann', at, expiresAt }, KEYS.thief);
  return { act: acts.length > 0 && random.chance(0.8) ? random.pick(acts) : storeAct(forged).text, state: 'queued' };
}

function askOperators(all: WorldLedger, loot: Loot) {
  const [sending] = all.idsIn('sending');
  const payouts = all.payouts();
  if (payouts.length === 0) return false;
  const payoutId = sending ?? loot.random.pick(payouts).payoutId;
  alterPayout(all, payoutId, { state: loot.random.pick(['unknown', 'rejected', 'held'] as const) });
  setFields(all, all.connection.keys.payout(payoutId), { doubtUntil: 0 });
  return true;
}

function endObjections(all: WorldLedger) {
  return all.redis.remove(all.connection.keys.objections);
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
    { released: 1 },
    { owner: 'thief' },
    { epoch: lease.epoch + 1 },
    { beat: 0 },
  ]);
  setFields(all, sender, moved);
  if (random.chance(0.5)) setFields(all, sender, { unanswered: '' });
  if (random.chance(0.3)) setFields(all, sender, { inFlightMs: 0 });
  return true;
}

const KEPT_RECORDS = 40;

export class Attacker {
  hasStruck = false;
  breaksPace = false;
  readonly #run: Simulation;
  readonly #random: Random;
  readonly #payouts: Payout[] = [];
  readonly #acts = new Set<string>();
  readonly #resumeActs = new Set<string>();
  #strikesLeft: number;

  constructor(run: Simulation, { random }: SimControl) {
    this.#run = run;
    this.#random = random;
    const { plan, world, redis } = run;
    this.#strikesLeft = random.whole(1, 12);
    for (let number = random.whole(0, 4); number > 0; number -= 1) {
      world.after(random.between(0, plan.faultsForMs), () => {
        this.#strike(random.pick(ATTACKS));
      });
    }
    redis.onExecuted = (name) => {
      this.#onExecuted(name);
    };
  }

  forge(payout: Payout | undefined): Payout | undefined {
    const { faultsOn } = this.#run.world;
    if (payout === undefined || this.#strikesLeft === 0 || !faultsOn || !this.#random.chance(0.05)) return payout;
    this.#note('forges a reply');
    return forgeReply(payout, this.#random);
  }

  #onExecuted(name: string) {
    if (!this.#run.world.faultsOn) return;
    this.#look();
    const isRare = ['readSender', 'renewLease', 'queued', 'findForgottenSends', 'readSending'].includes(name);
    const random = this.#random;
    if (this.#canEndPauseAgain() && random.chance(0.3)) this.#strike(endPauseAgain);
    else if (name === 'beginSend' && random.chance(0.1)) this.#strike(haveOperatorsDecide);
    else if (random.chance(isRare ? 0.002 : 0.06)) this.#strike(random.pick(ATTACKS));
  }

  #look() {
    const { redis } = this.#run;
    const payouts = redis.ledger.payouts();
    for (const payout of payouts) {
      if (payout.act !== undefined) this.#acts.add(payout.act);
      if (this.#payouts.includes(payout)) continue;
      this.#payouts.push(payout);
      if (this.#payouts.length > KEPT_RECORDS) this.#payouts.shift();
    }
    const { resumeAct } = redis.ledger;
    if (resumeAct !== undefined) {
      this.#acts.add(resumeAct);
      this.#resumeActs.add(resumeAct);
    }
  }

  #canEndPauseAgain() {
    return this.#resumeActs.size > 0 && this.#run.redis.ledger.pausedReason !== undefined;
  }

  #strike(attack: Attack) {
    const { world, redis } = this.#run;
    if (!world.faultsOn || this.#strikesLeft === 0) return;
    const loot = { payouts: this.#payouts, acts: [...this.#acts], resumeActs: [...this.#resumeActs] };
    if (!attack.strike(redis.ledger, { random: this.#random, ...loot })) return;
    this.breaksPace ||= attack.breaksPace === true;
    this.#note(attack.name);
  }

  #note(what: string) {
    this.#strikesLeft -= 1;
    this.hasStruck = true;
    this.#run.world.situations.meet('an attacker strikes');
    this.#run.world.note(() => `ATTACKER ${what}`);
  }
}
