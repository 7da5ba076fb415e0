import type { Payout } from './ledger/payout.js';

/** How the dashboard writes what a payout consists of. */

/** The currency as `id/symbol`: the id says in what is paid, the symbol in what the account is kept. */
export function toCurrency({ paymentId, symbol }: Pick<Payout, 'paymentId' | 'symbol'>): string {
  return symbol === undefined ? String(paymentId) : `${paymentId}/${symbol}`;
}

const SHORT_ADDRESS_ENDS = 6;

/** Both ends of a long address, by which people tell addresses apart. A destination tag stays whole. */
export function shortenAddress(addressTo: string): string {
  const [address = '', ...tag] = addressTo.split(':');
  const isShort = address.length <= 2 * SHORT_ADDRESS_ENDS + 1;
  const short = isShort ? address : `${address.slice(0, SHORT_ADDRESS_ENDS)}…${address.slice(-SHORT_ADDRESS_ENDS)}`;
  return [short, ...tag].join(':');
}

/**
 * Where a payout's page is, seen from where the dashboard is mounted. A payoutId may hold a slash. Browsers take a
 * path that is only dots, however it is escaped, for a step up, so such a payoutId goes into the query.
 */
export function payoutPath(payoutId: string): string {
  const encoded = encodeURIComponent(payoutId);
  return /^\.{1,2}$/.test(payoutId) ? `/payouts?payoutId=${encoded}` : `/payouts/${encoded}`;
}

/** A state's name for people. */
export function stateName(state: string): string {
  return state.replaceAll('_', ' ');
}

/** An ISO time to the second, still in UTC so that two people read the same. */
export function toTime(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
}

const UNITS = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'min', ms: 60_000 },
  { name: 's', ms: 1_000 },
] as const;

/** A duration in its largest unit, such as `3 min`. */
export function toAge(ms: number): string {
  const unit = UNITS.find((candidate) => ms >= candidate.ms) ?? UNITS[3];
  return `${Math.floor(ms / unit.ms)} ${unit.name}`;
}
