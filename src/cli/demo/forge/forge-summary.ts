import type { Payment } from '../../../sandbox/index.js';
import { LOOT, ORDERS } from './forge-orders.js';
import type { ForgeView } from './forge-view.js';
import { FORGERIES, type ForgeryOutcome } from './forgeries.js';

/** What `payouts demo --forge` prints with `--json`. */
export interface ForgeSummary {
  /** Whether the account with keys paid what was signed, once, and nothing else, and the other shows what was prevented. */
  readonly ok: boolean;
  /** What went wrong, in sentences. */
  readonly problems: readonly string[];
  readonly attacks: readonly AttackSummary[];
  /** What the gateway paid. */
  readonly books: { readonly withoutKeys: readonly BookEntry[]; readonly withKeys: readonly BookEntry[] };
  readonly durationMs: number;
}

export interface AttackSummary {
  readonly attack: string;
  readonly withoutKeys: ForgeryOutcome;
  readonly withKeys: ForgeryOutcome;
}

export interface BookEntry {
  readonly amount: string;
  readonly addressTo: string;
  readonly txhash: string;
  /** Whether the shop ordered just that, it is the first payment of it, and it was not to wait. */
  readonly isAsOrdered: boolean;
  readonly remark: string;
}

/** Those that no attack keeps from being paid, with keys. */
const PAID_IN_ANY_CASE = [ORDERS.copied, ORDERS.repeated, ORDERS.disowned];

/** Judges both accounts by the gateway's book. */
export function summariseForge(
  { withoutKeys, withKeys }: { readonly withoutKeys: ForgeView; readonly withKeys: ForgeView },
  durationMs: number,
): ForgeSummary {
  const attacks = FORGERIES.map(({ name, judge }) => ({
    attack: name,
    withoutKeys: judge(withoutKeys),
    withKeys: judge(withKeys),
  }));
  const books = { withoutKeys: readBook(withoutKeys.payments), withKeys: readBook(withKeys.payments) };
  const problems = [...attacks.flatMap(findProblems), ...findPaymentProblems(books.withKeys)];
  return { ok: problems.length === 0, problems, attacks, books, durationMs };
}

function findProblems({ attack, withoutKeys, withKeys }: AttackSummary): string[] {
  const problems: string[] = [];
  if (withKeys.succeeded === true) problems.push(`${attack}: succeeded in spite of the keys: ${withKeys.what}.`);
  if (withKeys.succeeded === undefined) problems.push(`${attack}: cannot be judged, with keys: ${withKeys.what}.`);
  if (withoutKeys.succeeded !== true) {
    problems.push(`${attack}: shows nothing, since it did not succeed without keys: ${withoutKeys.what}.`);
  }
  return problems;
}

/** The whole book, whatever the attacks were: also what no attack explains. */
function findPaymentProblems(book: readonly BookEntry[]): string[] {
  const wrong = book.filter(({ isAsOrdered }) => !isAsOrdered);
  const missing = PAID_IN_ANY_CASE.filter(({ addressTo }) => !book.some((entry) => entry.addressTo === addressTo));
  return [
    ...wrong.map(({ amount, addressTo, remark }) => `With keys, ${amount} was paid to ${addressTo}: ${remark}.`),
    ...missing.map(({ payoutId }) => `With keys, ${payoutId} was not paid, although it was signed.`),
  ];
}

const AS_ORDERED = 'as ordered';

function readBook(payments: readonly Payment[]): BookEntry[] {
  return payments.map(({ amount, addressTo, txhash }, index) => {
    const isAgain = payments.slice(0, index).some((earlier) => earlier.addressTo === addressTo);
    const remark = describe(amount, addressTo, isAgain);
    return { amount, addressTo, txhash, isAsOrdered: remark === AS_ORDERED, remark };
  });
}

function describe(amount: string, addressTo: string, isAgain: boolean): string {
  const order = Object.values(ORDERS).find((each) => each.addressTo === addressTo);
  if (order === undefined) return addressTo === LOOT.address ? 'a customer was to have it' : 'nobody ordered it';
  if (order.amount !== amount) return `${order.amount} was ordered`;
  if (isAgain) return 'paid a second time';
  return order === ORDERS.waiting ? 'the account was paused' : AS_ORDERED;
}
