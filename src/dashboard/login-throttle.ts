import { isIPv6 } from 'node:net';

/** Wrong passwords that a client may give before it has to wait: an operator mistypes, a script guesses. */
const FREE_FAILURES = 10;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** A client without failures for this long starts again. */
const FORGET_MS = 15 * 60_000;

/** Clients that are remembered; the one that failed longest ago is dropped first. */
const MAX_CLIENTS = 10_000;

interface Failures {
  readonly count: number;
  /** Monotonic clock, ms. */
  readonly at: number;
  readonly waitMs: number;
}

/**
 * Slows down clients that guess the password: from the eleventh wrong one on, each doubles the wait for the next try, from
 * one second to a minute. Each client waits for its own failures only, so an attacker locks nobody else out.
 */
export class LoginThrottle {
  readonly #now: () => number;
  readonly #failures = new Map<string, Failures>();

  /** @param now - monotonic clock, ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** How long the client has to wait before its next try, in ms. */
  waitMs(client: string): number {
    const { at, waitMs } = this.#of(client);
    return Math.max(0, at + waitMs - this.#now());
  }

  /** Counts a wrong password. @returns how many the client has given, and how long it has to wait, in ms */
  countFailure(client: string): { readonly failures: number; readonly waitMs: number } {
    const count = this.#of(client).count + 1;
    const waitMs =
      count < FREE_FAILURES ? 0 : Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(count - FREE_FAILURES, 16));
    // A Map keeps the order of insertion: the newest goes to the end.
    this.#failures.delete(client);
    this.#failures.set(client, { count, at: this.#now(), waitMs });
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > MAX_CLIENTS && oldest !== undefined) this.#failures.delete(oldest);
    return { failures: count, waitMs };
  }

  #of(client: string): Failures {
    const found = this.#failures.get(client);
    const isKnown = found !== undefined && this.#now() - found.at < FORGET_MS;
    return isKnown ? found : { count: 0, at: 0, waitMs: 0 };
  }
}

const IPV6_GROUPS = 8;
const NETWORK_GROUPS = 4;

/** The client behind an address: of IPv6 its /64 network, since one host has all addresses of it. */
export function networkOf(address: string): string {
  const [plain = ''] = address.split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1];
  if (mapped !== undefined || !isIPv6(plain)) return mapped ?? plain;
  const [start = [], end = []] = plain.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = new Array<string>(Math.max(0, IPV6_GROUPS - start.length - end.length)).fill('0');
  const groups = [...start, ...zeros, ...end].slice(0, NETWORK_GROUPS);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
