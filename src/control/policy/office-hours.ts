import { DAY_MS } from '../../base/clock.js';
const DAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;
const DAY_MINUTES = 24 * 60;
const MINUTE_MS = 60_000;
const DAYS_AHEAD = 23;

/** From one minute of a day to another, exclusive. */
interface Span {
  readonly days: ReadonlySet<number>;
  readonly from: number;
  readonly to: number;
}

interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly date: number;
  readonly day: number;
  readonly minute: number;
}

export class OfficeHours {
  readonly text: string;
  readonly #spans: readonly Span[];
  readonly #format: Intl.DateTimeFormat;

  constructor(text: string, spans: readonly Span[], timeZone: string) {
    this.text = text;
    this.#spans = spans;
    this.#format = new Intl.DateTimeFormat('en-GB', {
      ...{ timeZone, weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit' },
      ...{ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' },
    });
  }

  isOpen(at: number): boolean {
    const { day, minute } = this.#local(at);
    return this.#spans.some(({ days, from, to }) => days.has(day) && minute >= from && minute < to);
  }

  /**
   * @param at - wall clock, ms
   * @returns the next opening: `at` itself if it is open then; undefined if none comes soon
   */
  opensAt(at: number): number | undefined {
    if (this.isOpen(at)) return at;
    // A week's opening may lie in the hour that the clocks skip.
    const starts = Array.from({ length: DAYS_AHEAD }, (_, ahead) => this.#startsOf(at + ahead * DAY_MS)).flat();
    const next = starts.filter((start) => start > at && this.isOpen(start));
    if (next.length === 0) return undefined;
    let opens = Math.min(...next);
    // If a clock change skips the beginning, it opens with the change.
    while (opens - MINUTE_MS > at && this.isOpen(opens - MINUTE_MS)) opens -= MINUTE_MS;
    return opens;
  }

  #startsOf(at: number): number[] {
    const { year, month, date, day } = this.#local(at);
    return this.#spans
      .filter(({ days }) => days.has(day))
      .map(({ from }) => this.#find(Date.UTC(year, month - 1, date) + from * MINUTE_MS));
  }

  /** @param shown - the local time as if it were UTC, ms */
  #find(shown: number): number {
    const first = shown - this.#offset(shown);
    return shown - this.#offset(first);
  }

  /** The local time's offset from UTC at a moment, ms. */
  #offset(at: number): number {
    const { year, month, date, minute } = this.#local(at);
    return Date.UTC(year, month - 1, date) + minute * MINUTE_MS - Math.floor(at / MINUTE_MS) * MINUTE_MS;
  }

  #local(at: number): LocalTime {
    const parts = Object.fromEntries(this.#format.formatToParts(at).map(({ type, value }) => [type, value]));
    const number = (name: string): number => Number(parts[name]);
    return {
      ...{ year: number('year'), month: number('month'), date: number('day') },
      day: (DAYS as readonly string[]).indexOf(parts['weekday'] ?? ''),
      minute: number('hour') * 60 + number('minute'),
    };
  }
}

const RULE = 'must be days, hours and a time zone such as "Mon-Fri 08:00-18:00, Sat 09:00-12:00 Europe/Berlin"';

/** @throws RangeError with the broken rule */
export function parseOfficeHours(text: string): OfficeHours {
  const match = /^(.+) (\S+)$/.exec(text.trim());
  if (match === null) throw new RangeError(RULE);
  const [, spans = '', zone = ''] = match;
  try {
    return new OfficeHours(text.trim(), spans.split(',').map(parseSpan), zone);
  } catch (error) {
    if (error instanceof RangeError && error.message.startsWith('must')) throw error;
    throw new RangeError(`${RULE}: ${zone} is no time zone`, { cause: error });
  }
}

function parseSpan(text: string): Span {
  const match = /^([A-Z][a-z]{2})(?:-([A-Z][a-z]{2}))? (\d{2}:\d{2})-(\d{2}:\d{2})$/.exec(text.trim());
  if (match === null) throw new RangeError(RULE);
  const [, first = '', last = first, from = '', to = ''] = match;
  const [start, end] = [toMinute(from), toMinute(to)];
  if (end <= start)
    throw new RangeError(
      `must end after they begin; for a night give two spans, to 24:00 and from 00:00 (${text.trim()})`,
    );
  return { days: toDays(first, last), from: start, to: end };
}

function toDays(first: string, last: string): Set<number> {
  const [from, to] = [first, last].map((name) => (DAYS as readonly string[]).indexOf(name)) as [number, number];
  if (from < 0 || to < 0) throw new RangeError(`must name the days ${DAYS.join(', ')}`);
  const count = ((to - from + 7) % 7) + 1;
  return new Set(Array.from({ length: count }, (_, index) => (from + index) % 7));
}

function toMinute(time: string): number {
  const [hour = NaN, minute = NaN] = time.split(':').map(Number);
  const minutes = hour * 60 + minute;
  if (minute > 59 || minutes > DAY_MINUTES) throw new RangeError(`must be times from 00:00 to 24:00 (${time})`);
  return minutes;
}
