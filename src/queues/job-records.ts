import type { Queue } from 'bullmq';
import { isAborted } from '../base/clock.js';
import type { RedisClient } from '../base/redis.js';
import { readSource } from '../base/source-path.cjs';
import type { LedgerKeys } from '../ledger/keys.js';
import { ask } from '../ledger/ledger-connection.js';
import type { PayoutState } from '../ledger/states.js';
import { toJobId } from './payout-queues.js';

/**
 * `live` can still run, `dead` is finished or incomplete, `none` has no hash. It does not say whether the job is in its
 * queue.
 */
type JobRecordKind = (typeof RECORD_KINDS)[number];

export interface JobSuspect {
  readonly jobId: string;
  readonly position: JobPosition | undefined;
}

/**
 * The outcome for a suspect: `kept` is well or running, `cleared` has left nothing behind, `put_back` is running and is
 * active again.
 */
type SuspectOutcome = (typeof OUTCOMES)[number];

const RECORD_KINDS = ['live', 'dead', 'none'] as const;
const OUTCOMES = ['kept', 'cleared', 'put_back'] as const;

const STRUCTURES = ['wait', 'paused', 'active', 'prioritized', 'delayed', 'completed', 'failed'] as const;

/** Entries of a waiting list searched from either end: 1,000 take 0.05 ms, all of 100,000 would take 4 ms. */
const SEARCHED_ENTRIES = 1_000;
/** Suspects cleared at a time, so that Redis serves others after some 2 ms. */
const BURST = 10;

export class JobRecords {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * One command for some hundreds at most.
   * @returns one job id per payout; undefined if it is not in the state
   */
  async readJobIds(
    keys: LedgerKeys,
    state: PayoutState,
    payoutIds: readonly string[],
  ): Promise<(string | undefined)[]> {
    if (payoutIds.length === 0) return [];
    const records = payoutIds.map((payoutId) => keys.payout(payoutId));
    const counts = (await runQueueScript(this.#redis, 'read-requeue-counts', records, [state])) as number[];
    return payoutIds.map((payoutId, index) => {
      const requeueCount = counts[index] ?? -1;
      return requeueCount < 0 ? undefined : toJobId({ payoutId, requeueCount });
    });
  }

  /** One command for some hundreds at most. */
  async readKinds(queue: Queue, jobIds: readonly string[]): Promise<JobRecordKind[]> {
    if (jobIds.length === 0) return [];
    const keys = jobIds.map((jobId) => queue.toKey(jobId));
    const kinds = (await runQueueScript(this.#redis, 'find-dead-jobs', keys)) as number[];
    return kinds.map((kind) => pick(RECORD_KINDS, kind));
  }

  /**
   * Removes the remains of jobs that no worker will ever run. The removing step checks each once more.
   * @returns one outcome per suspect, in order
   */
  async clearOrphans(queue: Queue, suspects: readonly JobSuspect[]): Promise<SuspectOutcome[]> {
    const outcomes: SuspectOutcome[] = [];
    for (let start = 0; start < suspects.length; start += BURST) {
      const burst = suspects.slice(start, start + BURST);
      outcomes.push(...(await Promise.all(burst.map(async (suspect) => this.#clearOrphan(queue, suspect)))));
    }
    return outcomes;
  }

  async #clearOrphan(queue: Queue, { jobId, position }: JobSuspect): Promise<SuspectOutcome> {
    const keys = [jobId, `${jobId}:lock`, ...STRUCTURES].map((name) => queue.toKey(name));
    const seen = [position?.structure ?? '', position?.near === 'tail' ? -1 : 1];
    const args = [jobId, SEARCHED_ENTRIES, ...seen];
    return pick(OUTCOMES, (await runQueueScript(this.#redis, 'clear-orphan-job', keys, args)) as number);
  }
}

function pick<Meaning>(meanings: readonly Meaning[], code: number): Meaning {
  const meaning = meanings[code];
  if (meaning === undefined) throw new Error(`A script of the queues returned ${code}, which has no meaning`);
  return meaning;
}

const SCRIPTS = {
  'count-jobs': readScript('count-jobs'),
  'read-requeue-counts': readScript('read-requeue-counts'),
  'find-dead-jobs': readScript('find-dead-jobs'),
  'clear-orphan-job': readScript('clear-orphan-job'),
  'repair-job': readScript('repair-job'),
  'remove-cancelled-jobs': readScript('remove-cancelled-jobs'),
};

function readScript(name: string): string {
  return readSource(`queues/${name}.lua`);
}

export async function runQueueScript(
  redis: RedisClient,
  name: keyof typeof SCRIPTS,
  keys: readonly string[],
  args: readonly (string | number)[] = [],
): Promise<unknown> {
  const command = `payouts:${name}` as const;
  // Once per connection: a command that is defined again is sent with its whole text.
  if (!(command in redis)) redis.defineCommand(command, { lua: SCRIPTS[name] });
  const commands = redis as unknown as Record<typeof command, (...args: (string | number)[]) => Promise<unknown>>;
  return ask(commands[command](keys.length, ...keys, ...args));
}

/** BullMQ's structures of jobs to run, in the order in which a job passes them. `paused` is from older versions. */
export const JOB_STRUCTURES = [
  { name: 'active', type: 'list' },
  { name: 'delayed', type: 'sorted set' },
  { name: 'prioritized', type: 'sorted set' },
  { name: 'wait', type: 'list' },
  { name: 'paused', type: 'list' },
] as const;

export interface JobPosition {
  readonly structure: (typeof JOB_STRUCTURES)[number]['name'];
  /** The nearer end of the list; meaningless in a sorted set. */
  readonly near: 'head' | 'tail';
}

/**
 * Reads the position of every job of a queue, page by page. Jobs move meanwhile: a job in the map was there a moment ago.
 * A missing one may have moved between two pages.
 */
export async function readJobPositions(
  redis: RedisClient,
  queue: Queue,
  signal: AbortSignal,
): Promise<CompactMap<JobPosition>> {
  const positions = new CompactMap<JobPosition>();
  for (const { name: structure, type } of JOB_STRUCTURES) {
    const key = queue.toKey(structure);
    const half = type === 'list' ? (await ask(redis.llen(key))) / 2 : 0;
    const [head, tail] = [{ structure, near: 'head' } as const, { structure, near: 'tail' } as const];
    for await (const { start, entries } of type === 'list'
      ? readList(redis, key, signal)
      : readSortedSet(redis, key, signal)) {
      for (const jobId of entries) positions.set(jobId, start < half ? head : tail);
    }
  }
  return positions;
}

/** Minimum slots per entry. A fuller table is slower to search. */
const ROOM = 1.5;
const FIRST_CAPACITY = 1_024;
/** Different, so that texts sharing one half do not share the other. */
const LOW = { start: 0x811c9dc5, factor: 0x01000193 };
const HIGH = { start: 0x9e3779b9, factor: 0x85ebca6b };

/**
 * Maps texts to a few values in 14 to 27 bytes an entry; a Map takes 100. It keeps only a 64-bit hash of each text.
 * Among 100,000 texts, two share a hash with a probability of 1 in 10^9.
 */
export class CompactMap<Value> {
  #values: Value[] = [];
  #low = new Uint32Array(FIRST_CAPACITY);
  #high = new Uint32Array(FIRST_CAPACITY);
  /** Number of the entry's value, from 1; 0 marks a free slot. */
  #codes = new Uint8Array(FIRST_CAPACITY);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @throws RangeError at the 256th distinct value */
  set(text: string, value: Value): void {
    if (this.#size * ROOM >= this.#codes.length) this.#grow();
    this.#put(hash(text, LOW), hash(text, HIGH), this.#codeOf(value));
  }

  get(text: string): Value | undefined {
    const code = this.#codes[this.#find(hash(text, LOW), hash(text, HIGH))] ?? 0;
    return this.#values[code - 1];
  }

  #codeOf(value: Value): number {
    const index = this.#values.indexOf(value);
    if (index >= 0) return index + 1;
    if (this.#values.length === 255) throw new RangeError('A CompactMap holds at most 255 different values');
    return this.#values.push(value);
  }

  #put(low: number, high: number, code: number): void {
    const slot = this.#find(low, high);
    if (this.#codes[slot] === 0) this.#size += 1;
    this.#low[slot] = low;
    this.#high[slot] = high;
    this.#codes[slot] = code;
  }

  /** The slot of the entry, or the free one for it. The capacity is a power of two. */
  #find(low: number, high: number): number {
    const mask = this.#codes.length - 1;
    let slot = low & mask;
    while (this.#codes[slot] !== 0 && (this.#low[slot] !== low || this.#high[slot] !== high)) slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const [low, high, codes] = [this.#low, this.#high, this.#codes];
    const capacity = codes.length * 2;
    this.#low = new Uint32Array(capacity);
    this.#high = new Uint32Array(capacity);
    this.#codes = new Uint8Array(capacity);
    this.#size = 0;
    for (const [slot, code] of codes.entries()) if (code !== 0) this.#put(low[slot] ?? 0, high[slot] ?? 0, code);
  }
}

function hash(text: string, { start, factor }: typeof LOW): number {
  let value = start;
  for (let index = 0; index < text.length; index += 1) value = Math.imul(value ^ text.charCodeAt(index), factor);
  value = Math.imul(value ^ (value >>> 16), 0x7feb352d);
  value = Math.imul(value ^ (value >>> 15), 0x846ca68b);
  return (value ^ (value >>> 16)) >>> 0;
}

/** Entries per command: 1,000 take Redis 0.2 ms. */
const STEP = 1_000;
/** Each page overlaps the previous one, because removed entries shift those behind them. */
const OVERLAP = 100;

interface Page {
  readonly start: number;
  readonly entries: readonly string[];
}

/**
 * Reads a long list from its head, where BullMQ adds jobs; it takes them from the tail.
 * @param signal - ends the reading between two pages
 */
function readList(redis: RedisClient, key: string, signal: AbortSignal): AsyncGenerator<Page> {
  return readPages(async (start, stop) => ask(redis.lrange(key, start, stop)), signal);
}

/** Reads a large sorted set from its highest score, because most members leave at the lowest. */
export function readSortedSet(redis: RedisClient, key: string, signal: AbortSignal): AsyncGenerator<Page> {
  return readPages(async (start, stop) => ask(redis.zrange(key, start, String(stop), 'REV')), signal);
}

async function* readPages(
  read: (start: number, stop: number) => Promise<string[]>,
  signal: AbortSignal,
): AsyncGenerator<Page> {
  for (let start = 0; !isAborted(signal); start += STEP - OVERLAP) {
    const entries = await read(start, start + STEP - 1);
    yield { start, entries };
    if (entries.length < STEP) return;
  }
}
