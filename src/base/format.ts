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

/** A moment that still lasts: `2030-01-31 07:00:00 UTC, for 3 h 20 min`. @param now - wall clock, ms */
export function formatSince(iso: string, now: number): string {
  return `${formatTimeUtc(iso)}, for ${formatDuration(Math.max(0, now - Date.parse(iso)))}`;
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

/** As many as the smallest unit of a coin that people name; tokens have up to 18, and a sum at rates 36. */
const SHOWN_PLACES = 8;

/** The most that an amount may have: {@link formatExact} shows all of them. */
const MOST_PLACES = 18;

/** No amount has more digits before the point. A longer one was altered. */
const MOST_DIGITS = 30;

const LEAST = `0.${'1'.padStart(SHOWN_PLACES, '0')}`;

/**
 * `12,345.5 USD`, for people: digits in groups, at most 8 places, no exponent. What has more is rounded, and says so:
 * `≈ 0.33333333`, `< 0.00000001`. The comma is plain text: copied into a command it stays one word, and where one pays,
 * it is refused rather than read as a decimal point. So is `≈`.
 *
 * @param amount - a decimal string, or a count. A text that is no number is shown as it is
 */
export function formatAmount(amount: string | number, unit?: string): string {
  return format(amount, roundPlaces, unit);
}

/**
 * As {@link formatAmount}, but with every digit that an amount can have: where people sign an amount, state it, or
 * compare it with the gateway's.
 */
export function formatExact(amount: string | number, unit?: string): string {
  return format(amount, cutPlaces, unit);
}

interface Decimal {
  readonly sign: string;
  readonly whole: string;
  readonly places: string;
}

function format(amount: string | number, toText: (decimal: Decimal) => string, unit: string | undefined): string {
  const given = String(amount);
  const decimal = parseDecimal(given);
  // Who writes to Redis can make an amount of any length, and a page must stay readable.
  const isReadable = decimal !== undefined && decimal.whole.length <= MOST_DIGITS;
  const text = isReadable
    ? toText(decimal)
    : given.length > MOST_DIGITS
      ? `${given.slice(0, MOST_DIGITS)}… (${joinDigits('', String(given.length))} characters)`
      : given;
  return unit === undefined ? text : `${text} ${unit}`;
}

/** Some programs write numbers with an exponent. */
function parseDecimal(text: string): Decimal | undefined {
  const [, sign = '', given = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d{1,2}))?$/.exec(text) ?? [];
  if (given === '') return undefined;
  const shift = Number(exponent);
  const before = shift < 0 ? given.padStart(1 - shift, '0') : given;
  const digits = before + fraction.padEnd(shift, '0');
  const point = before.length + shift;
  return { sign, whole: digits.slice(0, point).replace(/^0+(?=\d)/, ''), places: digits.slice(point) };
}

function cutPlaces({ sign, whole, places }: Decimal): string {
  const isCut = /[1-9]/.test(places.slice(MOST_PLACES));
  return joinDigits(sign, whole, places.slice(0, MOST_PLACES) + (isCut ? '…' : ''));
}

function roundPlaces({ sign, whole, places }: Decimal): string {
  const kept = places.slice(0, SHOWN_PLACES);
  if (!/[1-9]/.test(places.slice(SHOWN_PLACES))) return joinDigits(sign, whole, kept);
  const units = BigInt(whole + kept) + ((places[SHOWN_PLACES] ?? '0') >= '5' ? 1n : 0n);
  if (units === 0n) return sign === '' ? `< ${LEAST}` : `> -${LEAST}`;
  const digits = units.toString().padStart(SHOWN_PLACES + 1, '0');
  return `≈ ${joinDigits(sign, digits.slice(0, -SHOWN_PLACES), digits.slice(-SHOWN_PLACES).replace(/0+$/, ''))}`;
}

function joinDigits(sign: string, whole: string, places = ''): string {
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return `${sign}${grouped}${places === '' ? '' : `.${places}`}`;
}

type Names = readonly { readonly paymentId: number; readonly name: string; readonly fee?: string | undefined }[];

/** `1,077 USDT (TRC-20)`, or `1,077 (payment_id 6)` for an unknown name. */
export function formatMoney(amount: string, paymentId: number, currencies: Names): string {
  return formatAmount(amount, nameCurrency(paymentId, currencies));
}

/** As {@link formatMoney}, with every digit. */
export function formatExactMoney(amount: string, paymentId: number, currencies: Names): string {
  return formatExact(amount, nameCurrency(paymentId, currencies));
}

/** `USDT (TRC-20)`, or `(payment_id 6)` for an unknown name. */
export function nameCurrency(paymentId: number, currencies: Names): string {
  return currencies.find((known) => known.paymentId === paymentId)?.name ?? `(payment_id ${paymentId})`;
}

/** What the gateway took for a payout; before that, what its list says. Undefined if it names no fee. */
export function formatFee(
  { paymentId, fee }: { readonly paymentId: number; readonly fee?: string | undefined },
  currencies: Names,
): string | undefined {
  if (fee !== undefined) return formatExactMoney(fee, paymentId, currencies);
  const listed = currencies.find((known) => known.paymentId === paymentId)?.fee;
  return listed && `${formatExactMoney(listed, paymentId, currencies)} in the gateway's list`;
}
