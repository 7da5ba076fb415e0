import { readFileSync } from 'node:fs';

/**
 * How long this host's kernel may still send what a process wrote to a TCP connection, although that process stands
 * still or has ended. A network that comes back within this time delivers it.
 *
 * Linux sends unacknowledged bytes again, with waits that double from 0.2 s up to 120 s. It gives up at the time that
 * the waits of `tcp_retries2` tries add up to, or those of `tcp_orphan_retries` if the process has ended
 * (`tcp_model_timeout` in net/ipv4/tcp_timer.c). The time counts from the first try, which comes later on a slow
 * connection.
 */

const FOLDER = '/proc/sys/net/ipv4';
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 120_000;
/** 0.2 s doubled so often stays below 120 s. */
const DOUBLINGS = 9;

/** Linux's defaults, by https://docs.kernel.org/networking/ip-sysctl.html. No other kernel in use sends for longer. */
const DEFAULT_RETRIES = 15;
const DEFAULT_ORPHAN_RETRIES = 8;

/** The two settings of this host's kernel. */
export interface KernelRetries {
  /** `net.ipv4.tcp_retries2`: for a process that stands still. */
  readonly retries: number;
  /** `net.ipv4.tcp_orphan_retries`: for a process that has ended. */
  readonly orphanRetries: number;
}

/** Linux's defaults where the kernel does not tell, as outside of Linux. */
export function readKernelRetries(): KernelRetries {
  const orphanRetries = readSetting('tcp_orphan_retries') ?? 0;
  return {
    retries: readSetting('tcp_retries2') ?? DEFAULT_RETRIES,
    // 0 means the kernel's own default.
    orphanRetries: orphanRetries === 0 ? DEFAULT_ORPHAN_RETRIES : orphanRetries,
  };
}

function readSetting(name: string): number | undefined {
  try {
    const value = Number(readFileSync(`${FOLDER}/${name}`, 'utf8'));
    return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  } catch {
    return undefined;
  }
}

/** From the first try on, in ms. */
export function resendsForMs({ retries, orphanRetries }: KernelRetries): number {
  return Math.max(timeOf(retries), timeOf(orphanRetries));
}

function timeOf(retries: number): number {
  const doublings = Math.min(retries, DOUBLINGS);
  return (2 ** (doublings + 1) - 1) * FIRST_WAIT_MS + (retries - doublings) * LONGEST_WAIT_MS;
}

interface OpenedConnection {
  readonly remoteAddress: string | undefined;
  /** How long name resolution and all handshakes took, in ms. */
  readonly connectedInMs: number;
}

/** From a write to this connection on, in ms. A host delivers to itself at once, and has nothing to send again. */
export function connectionResendsForMs(
  { remoteAddress = '', connectedInMs }: OpenedConnection,
  retries: KernelRetries,
): number {
  const isLoopback = /^(::ffff:)?127\./.test(remoteAddress) || remoteAddress === '::1';
  return isLoopback ? 0 : firstResendMs(connectedInMs) + resendsForMs(retries);
}

/**
 * The first try comes two round trips and one time-out after the write, and the time-out is at most five round trips.
 * A connection takes at least one round trip.
 */
function firstResendMs(connectedInMs: number): number {
  return 2 * FIRST_WAIT_MS + 7 * connectedInMs;
}

/** For a kernel that nobody can ask any more: the defaults, on a connection that took as long as one may. */
export function unknownResendsForMs(connectTimeoutMs: number): number {
  const retries = { retries: DEFAULT_RETRIES, orphanRetries: DEFAULT_ORPHAN_RETRIES };
  return firstResendMs(connectTimeoutMs) + resendsForMs(retries);
}
