import { rm } from 'node:fs/promises';
import { DAY_MS } from '../base/clock.js';
import type { SendAttempt } from '../ledger/sender-ledger.js';
import { type JournalFile, listFiles, readLines, syncFolder } from './journal-files.js';
import { identify, type JournalLine, type OutcomeLine, type SendLine } from './journal-line.js';
import { parseLine } from './parse-line.js';

/** The longest validity of a signed act after its use. */
const ACT_LIFETIME_MS = 7 * DAY_MS;
/** Tolerance for a wrong clock: an old intent must not pass as new. */
const GRACE_MS = DAY_MS;

/** Latest expiry (ms) of any intent or act that was used up to the file's last write. */
export function latestExpiry({ changedAt }: JournalFile): number {
  return Math.ceil(changedAt) + INTENT_VALID_AT_MOST_MS;
}

export function isExpired(file: JournalFile, now: number): boolean {
  return latestExpiry(file) + GRACE_MS < now;
}

interface OldFile {
  readonly path: string;
  /** Latest expiry (ms) of the intents and acts it names. */
  readonly expiresAt: number;
}

export class JournalRetention {
  readonly #path: string;
  readonly #keepMs: number;
  /** By inode. A full file does not change. */
  readonly #expiries = new Map<number, number>();

  constructor(path: string, keepMs: number) {
    this.#path = path;
    this.#keepMs = keepMs;
  }

  /**
   * The files to remove, oldest first and without a gap. The newest full file stays, because every start reads it.
   * @param now - wall clock, ms
   */
  async findOld(now: number): Promise<OldFile[]> {
    const old: OldFile[] = [];
    const former = (await listFiles(this.#path)).filter((file) => file.path !== this.#path).slice(0, -1);
    for (const file of former) {
      if (file.changedAt >= now - this.#keepMs || !isExpired(file, now)) break;
      const expiresAt = await this.#findExpiry(file);
      if (expiresAt + GRACE_MS >= now) break;
      old.push({ path: file.path, expiresAt });
    }
    return old;
  }

  async #findExpiry(file: JournalFile): Promise<number> {
    const found = this.#expiries.get(file.inode) ?? (await readExpiry(file));
    this.#expiries.set(file.inode, found);
    return Math.max(found, latestExpiry(file));
  }
}

/** Removes files, oldest first, with a folder sync after each. Otherwise a power cut could leave a gap. */
export async function removeFiles(files: readonly OldFile[]): Promise<void> {
  for (const { path } of files) {
    await rm(path, { force: true });
    await syncFolder(path);
  }
}

async function readExpiry(file: JournalFile): Promise<number> {
  let latest = 0;
  for await (const { text } of readLines(file, 0)) {
    if (!/"(?:signed|resumed)":/.test(text)) continue;
    const line = parseLine(text, file.path)?.line;
    if (line !== undefined) latest = Math.max(latest, expiryOf(line));
  }
  return latest;
}

function expiryOf(line: JournalLine): number {
  if ('resumed' in line) return line.resumed.at + ACT_LIFETIME_MS;
  if (!('signed' in line) || line.signed === undefined) return 0;
  const { act, expiresAt } = line.signed;
  return act === undefined ? expiresAt : Math.max(expiresAt, line.at + ACT_LIFETIME_MS);
}

/**
 * The longest validity of an intent after its send: seven days, plus five minutes for a signer whose clock is ahead.
 */
const INTENT_VALID_AT_MOST_MS = 7 * DAY_MS + 5 * 60 * 1000;

/** Attempts of a payout. The usual single one needs no array. An accepted attempt is negative. */
type Numbers = number | readonly number[];

/**
 * Attempts of all kept files, by payout. It holds signed attempts. If signing is required, it also holds attempts of
 * processes without keys whose intents may be valid. An attempt leaves if it is proved not sent, if an operator's act
 * states that it paid nothing, or long after its intent expired. An expired intent is never sent.
 *
 * At most 86,400 sends a day are held for the life of an intent, about 100 bytes each.
 */
export class SentAttempts {
  /** By the day on which intents expire, then by payoutId. */
  readonly #days = new Map<number, Map<string, Numbers>>();
  /** Attempts whose outcome may still be "not sent", with their day. */
  readonly #undecided = new Map<string, number>();
  readonly #cleared = new Map<string, Set<number>>();
  readonly #holdsUnsigned: boolean;

  /** @param holdsUnsigned - false without keys: then nothing needs old unsigned attempts */
  constructor(holdsUnsigned = false) {
    this.#holdsUnsigned = holdsUnsigned;
  }

  noteSend({ payoutId, attempt, token, at, signed }: SendLine): void {
    if (signed === undefined && !this.#holdsUnsigned) return;
    for (const number of signed?.clears ?? []) this.#clear(payoutId, number);
    this.#cleared.get(payoutId)?.delete(attempt);
    const key = identify({ payoutId, attempt, token });
    if (this.#undecided.has(key)) return;
    const day = Math.floor((signed?.expiresAt ?? at + INTENT_VALID_AT_MOST_MS) / DAY_MS);
    const attempts = this.#days.get(day) ?? new Map<string, Numbers>();
    this.#days.set(day, attempts);
    const before = attempts.get(payoutId);
    attempts.set(payoutId, before === undefined ? attempt : [...toList(before), attempt]);
    this.#undecided.set(key, day);
  }

  noteOutcome({ outcome, ...attempt }: OutcomeLine): void {
    const day = this.#undecided.get(identify(attempt));
    if (day === undefined || outcome.kind === 'unknown') return;
    this.#undecided.delete(identify(attempt));
    if (outcome.kind === 'not_sent') this.#replaceOne(day, attempt, []);
    if (outcome.kind === 'accepted') this.#replaceOne(day, attempt, [-attempt.attempt]);
  }

  numbersOf(payoutId: string): readonly number[] {
    return this.#of(payoutId).map(Math.abs);
  }

  wasAccepted(payoutId: string, attempt: number): boolean {
    return this.#of(payoutId).includes(-attempt);
  }

  #of(payoutId: string): readonly number[] {
    return [...this.#days.values()].flatMap((attempts) => toList(attempts.get(payoutId) ?? []));
  }

  isCleared(payoutId: string, attempt: number): boolean {
    return this.#cleared.get(payoutId)?.has(attempt) ?? false;
  }

  /** Forgets attempts whose intents expired by then (ms). Their files are gone and their intents are refused. */
  forget(expiredUpTo: number): void {
    for (const day of this.#days.keys()) if ((day + 1) * DAY_MS <= expiredUpTo) this.#days.delete(day);
    for (const [key, day] of this.#undecided) if (!this.#days.has(day)) this.#undecided.delete(key);
  }

  #clear(payoutId: string, attempt: number): void {
    const cleared = this.#cleared.get(payoutId) ?? new Set();
    this.#cleared.set(payoutId, cleared.add(attempt));
  }

  /** Removes one only: another sender may have journaled the same number. */
  #replaceOne(day: number, { payoutId, attempt }: SendAttempt, by: readonly number[]): void {
    const attempts = this.#days.get(day);
    const numbers = [...toList(attempts?.get(payoutId) ?? [])];
    const index = numbers.indexOf(attempt);
    if (index !== -1) numbers.splice(index, 1, ...by);
    if (numbers.length === 0) attempts?.delete(payoutId);
    else attempts?.set(payoutId, numbers);
  }
}

function toList(numbers: Numbers): readonly number[] {
  return typeof numbers === 'number' ? [numbers] : numbers;
}
