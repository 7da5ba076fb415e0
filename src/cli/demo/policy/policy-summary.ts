import { fromUnits, toUnits } from '../../../decimal.js';
import type { Payment } from '../../../sandbox/index.js';
import { ORDERS, PER_WINDOW, THEFTS, THIEF_ADDRESS, WINDOW_MS, type PolicyOrder } from './policy-orders.js';
import type { PolicyView } from './policy-view.js';

/** What `payouts demo --policy` prints with `--json`. */
export interface PolicySummary {
  /** Whether each rule held. */
  readonly ok: boolean;
  readonly rules: readonly RuleSummary[];
  /** What the gateway paid, in its order. */
  readonly book: readonly { readonly amount: string; readonly addressTo: string; readonly txhash: string }[];
  /** Decimal string. */
  readonly stolen: { readonly ordered: string; readonly paid: string };
  readonly durationMs: number;
}

export interface RuleSummary {
  readonly rule: string;
  /** What it was to do. */
  readonly what: string;
  readonly held: boolean;
  /** What was found. */
  readonly found: string;
}

/** Judges the account by the gateway's book, and by what the records say. */
export function summarisePolicy(view: PolicyView, durationMs: number): PolicySummary {
  const rules = RULES.map(({ judge, ...rule }) => {
    const { isSo, found } = judge(view);
    return { ...rule, held: isSo, found };
  });
  const book = view.payments.map(({ amount, addressTo, txhash }) => ({ amount, addressTo, txhash }));
  const stolen = {
    ordered: sum([...THEFTS.small, THEFTS.everything]),
    paid: sum(view.payments.filter(({ addressTo }) => addressTo === THIEF_ADDRESS)),
  };
  return { ok: rules.every(({ held }) => held), rules, book, stolen, durationMs };
}

interface Judgement {
  readonly isSo: boolean;
  readonly found: string;
}

interface Rule {
  readonly rule: string;
  readonly what: string;
  readonly judge: (view: PolicyView) => Judgement;
}

const RULES: readonly Rule[] = [
  {
    rule: 'four-eyes',
    what: "2500 dollars need two persons; another key of the signer's counts for none",
    judge({ asked, afterOwnKey, payments }) {
      const paid = payments.filter(({ addressTo }) => addressTo === ORDERS.large.addressTo).length;
      const found = `asked for ${asked ?? 0} persons, then for ${afterOwnKey ?? 0}; paid ${times(paid)}`;
      return { isSo: asked === 2 && afterOwnKey === 1 && paid === 1, found };
    },
  },
  {
    rule: 'four-eyes',
    what: 'one who rejects ends it',
    judge: (view) => areRefused(view, [ORDERS.doubtful], 'four-eyes'),
  },
  {
    rule: 'two-each-10s',
    what: `an address gets ${PER_WINDOW} payouts in any 10 s; others wait, and are sent by themselves`,
    judge({ payments }) {
      const most = Math.max(...[...groupByAddress(payments).values()].map(mostInWindow));
      const waited = payments.filter(({ addressTo }) => addressTo === ORDERS.often[0]?.addressTo);
      const gapMs = Math.floor((waited[PER_WINDOW]?.acceptedAtMs ?? NaN) - (waited[0]?.acceptedAtMs ?? NaN));
      const found = `at most ${most}; the third came ${(gapMs / 1_000).toFixed(1)} s after the first`;
      return { isSo: most === PER_WINDOW && waited.length === ORDERS.often.length && gapMs >= WINDOW_MS, found };
    },
  },
  {
    rule: 'never-more',
    what: 'above 20000 dollars nobody can approve',
    judge: (view) => areRefused(view, [THEFTS.everything], 'never-more'),
  },
  {
    rule: 'known-thieves',
    what: 'an address that was put on the list gets no more',
    judge: (view) => areRefused(view, THEFTS.small.slice(PER_WINDOW), 'known-thieves'),
  },
  {
    rule: 'default',
    what: 'the book has what the rules let pass, once, and nothing else',
    judge({ payments }) {
      const asText = (each: Pick<PolicyOrder, 'amount' | 'addressTo'>): string => `${each.amount} ${each.addressTo}`;
      const [paid, allowed] = [payments.map(asText).sort(), ALLOWED.map(asText).sort()];
      return { isSo: paid.join() === allowed.join(), found: `${paid.length} payments of ${allowed.length}` };
    },
  },
];

/** The thief's first ones are below what anybody has to approve. */
const ALLOWED = [...ORDERS.small, ...ORDERS.often, ORDERS.large, ...THEFTS.small.slice(0, PER_WINDOW)];

function areRefused({ payouts }: PolicyView, orders: readonly PolicyOrder[], rule: string): Judgement {
  const held = orders.map(({ payoutId }) => payouts.get(payoutId)?.held);
  const refused = held.filter((each) => each?.rule === rule && each.reason === 'refuse').length;
  return { isSo: refused === orders.length, found: `${refused} of ${orders.length} held` };
}

function groupByAddress(payments: readonly Payment[]): ReadonlyMap<string, readonly Payment[]> {
  const groups = new Map<string, Payment[]>();
  for (const payment of payments) {
    const group = groups.get(payment.addressTo) ?? [];
    group.push(payment);
    groups.set(payment.addressTo, group);
  }
  return groups;
}

/** The most payments that arrived within any window. */
function mostInWindow(payments: readonly Payment[]): number {
  const times = payments.map(({ acceptedAtMs }) => acceptedAtMs);
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + WINDOW_MS).length));
}

function sum(payments: readonly Pick<Payment, 'amount'>[]): string {
  return fromUnits(payments.reduce((total, { amount }) => total + toUnits(amount), 0n));
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
