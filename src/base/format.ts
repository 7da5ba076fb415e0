/** Formats values for operators: the command line, the demo and the dashboard. */

const SHOWN_ENDS = 6;

/** Shortens an address or txhash to both its ends, which operators compare. A destination tag stays whole. */
export function shorten(text: string): string {
  const [address = '', ...tag] = text.split(':');
  const isShort = address.length <= 2 * SHOWN_ENDS + 1;
  return [isShort ? address : `${address.slice(0, SHOWN_ENDS)}…${address.slice(-SHOWN_ENDS)}`, ...tag].join(':');
}

/** `queued, held or rejected`. */
export function formatAlternatives(names: readonly string[]): string {
  return names.join(', ').replace(/, ([^,]*)$/, ' or $1');
}

/** The currency as `id/symbol`: the payment's currency id, and the account's symbol. */
export function formatCurrency({
  paymentId,
  symbol,
}: {
  readonly paymentId: number;
  readonly symbol?: string | undefined;
}): string {
  return symbol === undefined ? String(paymentId) : `${paymentId}/${symbol}`;
}

/** A state's name for a sentence or a heading. In commands it stays unformatted. */
export function formatState(state: string): string {
  return state.replaceAll('_', ' ');
}

/** The last moment that a date can be, ms since 1970. */
export const LAST_TIME_MS = 8.64e15;

/** A stored time, ms since 1970, as ISO 8601. What is no time, because someone has altered it, becomes 1970. */
export function toIsoTime(time: number): string {
  return new Date(Math.abs(time) <= LAST_TIME_MS ? time : 0).toISOString();
}

/** An ISO time to the second, in UTC, for a heading that names the time zone. */
export function formatTime(iso: string): string {
  return iso.replace('T', ' ').replace(/(\.\d+)?Z$/, '');
}

export function formatTimeUtc(iso: string): string {
  return `${formatTime(iso)} UTC`;
}

/** A duration in its two largest units, such as `3 h 20 min`. @param ms - milliseconds, 0 or more */
export function formatDuration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Milliseconds, rounded down: 999.9 must not be shown as 1000. */
export function formatMs(ms: number): string {
  return `${Math.floor(ms)} ms`;
}

/** `1 payout`, `1,216 payouts`. */
export function formatCount(count: number, thing: string): string {
  return `${formatAmount(count)} ${thing}${count === 1 ? '' : 's'}`;
}

export function formatSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

const SHOWN_PLACES = 18;

/**
 * `12,345.5 USD`: digits in groups, and `…` after 18 places if more follow, because a cut amount must not pass for the
 * exact one. The comma is plain text: copied into a command it stays one word, and where one pays, it is refused rather
 * than read as a decimal point.
 *
 * @param amount - a decimal string, or a count
 */
export function formatAmount(amount: string | number, unit?: string): string {
  const [whole = '', places = ''] = String(amount).split('.');
  const shown = places.slice(0, SHOWN_PLACES) + (/[1-9]/.test(places.slice(SHOWN_PLACES)) ? '…' : '');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return [shown === '' ? grouped : `${grouped}.${shown}`, ...(unit === undefined ? [] : [unit])].join(' ');
}

/** `1,077 USDT (TRC-20)`, or `1,077 (payment_id 6)` for an unknown name. */
export function formatMoney(
  amount: string,
  paymentId: number,
  currencies: readonly { readonly paymentId: number; readonly name: string }[],
): string {
  const currency = currencies.find((known) => known.paymentId === paymentId);
  return formatAmount(amount, currency?.name ?? `(payment_id ${paymentId})`);
}
