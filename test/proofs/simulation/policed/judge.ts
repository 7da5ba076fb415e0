import type { WithdrawRequest } from '../../../../src/gateway/gateway.js';
import { walletOf } from '../../../world/worker.js';
import type { WorldProcess } from '../../../world/world.js';
import type { SimPolicy } from './policy.js';
import { minuteOf, lowestOf, timesFixed, toFixed, type KnownRate, LISTED, type SimRule } from './rules.js';

type Payment = Pick<WithdrawRequest, 'paymentId' | 'amount' | 'addressTo'> & Readonly<{ symbol?: string | undefined }>;

type Written = Readonly<{
  payment: Payment;
  at: number;
  worths: readonly KnownRate[];
  approvedFor: ReadonlySet<string>;
}>;

interface Arrived extends Written {
  readonly arrivedAt: number;
}

export const CLOCKS_WITHIN_MS = 1_000;

/** Rates of clocks, and times of day that are whole milliseconds, make a window this much shorter at most, ms. */
const ROUNDING_MS = 50;

/**
 * Says at the gateway whether the rules let a payment leave, from the rules as they stand in the file and from what really
 * happened: arithmetic, windows, hours and persons of its own, so that a mistake of the worker is none of the judge.
 */
export class PolicyJudge {
  readonly #policy: SimPolicy;
  readonly #written = new Map<string, Written>();
  readonly #arrived: Arrived[] = [];
  readonly #firstSeen = new Map<string, number>();

  constructor(policy: SimPolicy) {
    this.#policy = policy;
  }

  seen(addressTo: string) {
    if (!this.#firstSeen.has(addressTo)) this.#firstSeen.set(addressTo, this.#policy.world.now);
  }

  written(process: WorldProcess, payment: Payment) {
    const { world, rules, rates, approvers } = this.#policy;
    const payoutId = payment.addressTo.slice(walletOf('').length);
    const backMs = this.#backMs;
    const worths = rates.around(process, payment.paymentId, backMs).map((rate) => worthOf(payment, rate));
    const quorums = rules.rules.flatMap(({ name, over }) =>
      isQuorum(over) && approvers.hasQuorum(process.name, payoutId, over.quorum, backMs + CLOCKS_WITHIN_MS)
        ? [name]
        : [],
    );
    const written = { payment, at: world.now, worths, approvedFor: new Set(quorums) };
    this.#written.set(payment.addressTo, written);
    if (approvers.hasReadRejection(process.name, payoutId)) {
      world.fail(`policy: ${process.name} writes ${payoutId}, which a person rejected`);
    }
    for (const rule of rules.rules) {
      const wrong = this.#findWrong(rule, written);
      if (wrong !== undefined)
        world.fail(`policy: ${process.name} writes ${payoutId}, although ${rule.name}: ${wrong}`);
    }
    const isCovered = rules.rules.some((rule) => rule.cap !== undefined && this.#mayBeAbout(rule, written));
    if (!isCovered && rules.uncovered === 'hold') world.fail(`policy: ${payoutId} is written, and no cap is about it`);
  }

  paid(payment: Payment) {
    const { world, rules, isPromised } = this.#policy;
    const written = this.#written.get(payment.addressTo);
    if (written === undefined) {
      world.fail(`policy: ${payment.addressTo} was paid, and nobody wrote that`);
      return;
    }
    const arrived = { ...written, arrivedAt: world.now };
    this.#arrived.push(arrived);
    for (const rule of rules.rules) {
      if (rule.cap?.withinMs === undefined || !this.#isAbout(rule, arrived)) continue;
      // What needs no approval has to fit with all that left before it; what has one may go over the cap.
      const isOrdered = isQuorum(rule.over);
      if (isOrdered && arrived.approvedFor.has(rule.name)) continue;
      const sum = this.#sumOf(rule, rule.cap, rule.cap.withinMs, arrived, isOrdered);
      const limit = limitOf(rule.cap);
      if (sum * 10n > limit * 8n) world.situations.meet('a cap is nearly used up');
      if (sum > limit && isPromised) {
        world.fail(`over the cap: ${sum} of ${limit} arrived within ${rule.cap.withinMs} ms (${rule.name})`);
      }
    }
  }

  isHopeless(payoutId: string, payment: Payment) {
    const { rules, rates, approvers, world } = this.#policy;
    const { paymentId } = payment;
    if (approvers.isRejected(payoutId) || approvers.hadRejection(payoutId)) return true;
    const worth = worthOf(payment, world.faultsOn ? rates.lowest(paymentId) : rates.current(paymentId));
    return rules.rules.some((rule) => {
      const { cap, over, open } = rule;
      if (!this.#isAbout(rule, { payment, worths: [worth] })) return false;
      if (isQuorum(over)) return false;
      if (cap === undefined) return over === 'refuse' && open === undefined;
      return valueOf(cap, payment, worth) > limitOf(cap);
    });
  }

  #findWrong(rule: SimRule, written: Written) {
    if (!this.#isAbout(rule, written)) return this.#isUnknown(rule, written) ? 'its worth is not known' : undefined;
    const { cap, over, open } = rule;
    const { payment, approvedFor } = written;
    // A window may let it pass as well: that is judged when it arrives.
    const wrong = cap && findOver(cap, written);
    if (isQuorum(over)) {
      const passes = cap !== undefined && wrong === undefined;
      return passes || approvedFor.has(rule.name) ? undefined : 'it has no quorum';
    }
    if (cap !== undefined) return wrong;
    if (open !== undefined) return this.#isOpen(open) ? undefined : 'it is closed';
    if (typeof over === 'string') return 'it is about it';
    const seenAt = this.#firstSeen.get(payment.addressTo) ?? Infinity;
    const isOver = 'coolMs' in over && written.at - seenAt >= over.coolMs - 2 * CLOCKS_WITHIN_MS - ROUNDING_MS;
    return isOver ? undefined : 'its address is new';
  }

  #isAbout(rule: SimRule, { payment, worths }: Judged) {
    return isInScope(rule, payment) && worths.every((worth) => isAbove(rule, worth) === true);
  }

  #mayBeAbout(rule: SimRule, { payment, worths }: Judged) {
    return isInScope(rule, payment) && worths.some((worth) => isAbove(rule, worth) !== false);
  }

  #isUnknown(rule: SimRule, { payment, worths }: Judged) {
    return isInScope(rule, payment) && worths.every((worth) => isAbove(rule, worth) === undefined);
  }

  #isOpen(open: NonNullable<SimRule['open']>) {
    const { world } = this.#policy;
    const [from, to] = [world.now - this.#backMs - CLOCKS_WITHIN_MS, world.now + CLOCKS_WITHIN_MS];
    const minutes = [from, world.now, to].map(minuteOf);
    return open.some(([opens, closes]) => minutes.some((minute) => minute >= opens && minute < closes));
  }

  #sumOf(rule: SimRule, cap: Cap, withinMs: number, last: Arrived, isOrdered: boolean) {
    const since = last.arrivedAt - withinMs + ROUNDING_MS;
    return this.#arrived
      .filter((each) => each.arrivedAt > since && this.#isAbout(rule, each) && (!isOrdered || each.at <= last.at))
      .filter((each) => cap.per === undefined || bucketOf(each.payment.addressTo) === bucketOf(last.payment.addressTo))
      .reduce((sum, each) => sum + leastOf(cap, each), 0n);
  }

  get #backMs() {
    return 1.01 * this.#policy.plan.settings.guardMs + ROUNDING_MS;
  }
}

type Cap = NonNullable<SimRule['cap']>;
type Judged = Pick<Written, 'payment' | 'worths'>;

/** Whether what it is worth makes a rule concern a payment; undefined where that is not known. */
function isAbove({ usdAbove }: SimRule, worth: KnownRate) {
  if (usdAbove === undefined) return true;
  return worth === undefined ? undefined : worth > toFixed(usdAbove);
}

function isInScope({ currency, isListed }: SimRule, { paymentId, addressTo }: Payment) {
  if (currency !== undefined && currency !== paymentId) return false;
  return isListed === undefined || bucketOf(addressTo) === LISTED;
}

function isQuorum(over: SimRule['over']): over is { readonly quorum: 1 | 2 } {
  return typeof over === 'object' && 'quorum' in over;
}

function bucketOf(addressTo: string) {
  return addressTo.slice(0, addressTo.indexOf(':') === -1 ? undefined : addressTo.indexOf(':'));
}

/** With a symbol, which is that of the dollar here, the amount may be in dollars. */
function worthOf({ amount, symbol }: Payment, rate: KnownRate): KnownRate {
  if (rate === undefined) return undefined;
  const worth = timesFixed(toFixed(amount), rate);
  return symbol !== undefined && worth < toFixed(amount) ? toFixed(amount) : worth;
}

function findOver(cap: Cap, written: Judged) {
  if (cap.unit === 'usd' && written.worths.every((worth) => worth === undefined)) return 'its worth is not known';
  const least = leastOf(cap, written);
  return least > limitOf(cap) ? `it is ${least}, more than ${limitOf(cap)}` : undefined;
}

function leastOf(cap: Cap, { payment, worths }: Judged) {
  return valueOf(cap, payment, lowestOf(worths.filter((worth) => worth !== undefined)));
}

function valueOf({ unit }: Cap, { amount }: Payment, worth: KnownRate) {
  if (unit === 'count') return toFixed('1');
  return unit === 'amount' ? toFixed(amount) : (worth ?? 0n);
}

function limitOf({ limit }: Cap) {
  return toFixed(limit);
}
