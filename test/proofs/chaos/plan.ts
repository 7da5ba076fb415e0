import { createRandom } from '../../../src/sandbox/latency.js';
import { REAL, SCALED, type Timing } from './timing.js';

export const WORKERS = 3;

/** Whom a fault hits: the worker that is the sender at that moment, or, where that is not known, the one of that number. */
export interface Target {
  readonly sender: boolean;
  readonly worker: number;
}

interface At {
  /** Since the chaos began, in ms. */
  readonly atMs: number;
}

/** The links between workers and Redis that a fault hits, by the workers' numbers. */
interface Links {
  readonly links: readonly number[];
  readonly forMs: number;
}

export type Fault = At &
  (
    | { readonly kind: 'worker-kill' | 'worker-end'; readonly target: Target; readonly backAfterMs: number }
    | { readonly kind: 'worker-stop'; readonly target: Target; readonly forMs: number }
    | { readonly kind: 'redis-kill'; readonly downMs: number }
    | { readonly kind: 'redis-cut-off'; readonly downMs: number; readonly bytes: number }
    | { readonly kind: 'redis-older'; readonly downMs: number; readonly copyAtMs: number }
    | ({ readonly kind: 'link-delay'; readonly maxMs: number } & Links)
    | ({ readonly kind: 'link-cut' } & Links)
    | ({
        readonly kind: 'link-blackhole';
        readonly direction: 'requests' | 'replies' | 'both';
        /** What was swallowed comes late, or never. */
        readonly ends: 'late' | 'never';
      } & Links)
    | { readonly kind: 'gateway-stop' | 'gateway-hold'; readonly forMs: number }
  );

type Kind = Fault['kind'];

/** Each kind in turn is the first fault of a round, so that a few rounds already have met every kind. */
const KINDS: readonly Kind[] = [
  'worker-kill',
  'redis-older',
  'worker-stop',
  'link-blackhole',
  'redis-kill',
  'gateway-stop',
  'link-cut',
  'redis-cut-off',
  'link-delay',
  'gateway-hold',
  'worker-end',
];

/** After these Redis knows less than before. */
const FORGETTING: ReadonlySet<Kind> = new Set<Kind>(['redis-older', 'redis-cut-off']);

/** These keep no worker from reporting what its journal has. */
const HARMLESS_TO_OWN_JOURNALS: readonly Kind[] = ['link-delay', 'gateway-hold', 'gateway-stop', 'redis-kill'];

const REAL_EVERY = 10;
const MAX_MORE_FAULTS = 4;

/** All that a seed decides about a round. */
export interface Plan {
  readonly seed: number;
  readonly timing: Timing;
  /** When the application enqueues each payout, in ms since the chaos began; before it for those that are there at first. */
  readonly enqueueAtMs: readonly number[];
  /**
   * One folder for all hosts, or one each: then, where Redis forgets something, every worker runs and reaches Redis, because
   * only the one that sent knows what it forgot (docs/guarantees.md, A7).
   */
  readonly sharedJournal: boolean;
  /** The operator reads the dashboard's page, not `payouts stats`. */
  readonly readsPage: boolean;
  readonly maxUnknownsInARow: number;
  readonly faults: readonly Fault[];
  /** Payouts are signed, and workers have a keyring. */
  readonly signed: boolean;
  /** With keys: when an operator pauses the account for a look. He signs its end. In ms since the chaos began. */
  readonly pauseAtMs: number | undefined;
  /** With keys: the operator once forgets to sign. */
  readonly forgetsKey: boolean;
}

export function forgets({ faults }: Plan): boolean {
  return faults.some(({ kind }) => FORGETTING.has(kind));
}

export function drawPlan(seed: number, signed: boolean): Plan {
  const draw = new Draw(seed);
  const timing = seed % REAL_EVERY === 0 ? REAL : SCALED;
  const first = KINDS[seed % KINDS.length] as Kind;
  const sharedJournal = draw.chance(0.5);
  const ofOwnJournals = FORGETTING.has(first)
    ? HARMLESS_TO_OWN_JOURNALS
    : KINDS.filter((kind) => !FORGETTING.has(kind));
  const others = sharedJournal ? KINDS : ofOwnJournals;
  const kinds = [first];
  for (let more = draw.whole(1, MAX_MORE_FAULTS); more > 0; more -= 1) {
    const kind = draw.one(others);
    if (kind !== 'redis-older' || !kinds.includes(kind)) kinds.push(kind);
  }
  const faults = kinds.map((kind) => drawFault(kind, timing, draw)).sort((one, other) => one.atMs - other.atMs);
  const payouts = draw.whole(timing.payouts.min, timing.payouts.max);
  const plan = {
    seed,
    timing,
    faults,
    enqueueAtMs: Array.from({ length: payouts }, (_, index) =>
      index < payouts / 2 ? -1 : draw.whole(0, timing.chaosMs),
    ),
    maxUnknownsInARow: draw.one([2, 99]),
    sharedJournal,
    readsPage: draw.chance(0.4),
    signed,
    pauseAtMs: draw.chance(0.6) ? draw.whole(0, timing.chaosMs) : undefined,
    forgetsKey: draw.chance(0.4),
  };
  return plan;
}

function drawFault(kind: Kind, timing: Timing, draw: Draw): Fault {
  const { leaseMs, chaosMs } = timing;
  const atMs = draw.whole(0, chaosMs);
  switch (kind) {
    case 'worker-kill':
    case 'worker-end':
      return { kind, atMs, target: drawTarget(draw), backAfterMs: draw.whole(0, leaseMs * 2) };
    case 'worker-stop':
      return { kind, atMs, target: drawTarget(draw), forMs: draw.whole(leaseMs / 2, leaseMs * 5) };
    case 'redis-kill':
      return { kind, atMs, downMs: draw.whole(0, leaseMs * 3) };
    case 'redis-cut-off':
      return { kind, atMs, downMs: draw.whole(0, leaseMs), bytes: draw.whole(1, draw.one([40, 1_000, 8_000])) };
    case 'redis-older':
      return { kind, atMs, downMs: draw.whole(0, leaseMs), copyAtMs: draw.whole(0, atMs) };
    case 'link-delay':
      return { kind, atMs, links: drawLinks(draw), forMs: draw.whole(leaseMs / 2, leaseMs * 4), maxMs: leaseMs / 5 };
    case 'link-cut':
      return { kind, atMs, links: drawLinks(draw), forMs: draw.whole(0, leaseMs * 2) };
    case 'link-blackhole':
      return {
        kind,
        atMs,
        links: drawLinks(draw),
        direction: draw.one(['requests', 'replies', 'both']),
        ends: draw.one(['late', 'never']),
        forMs: draw.whole(leaseMs / 5, leaseMs * 4),
      };
    case 'gateway-stop':
      return { kind, atMs, forMs: draw.whole(timing.gatewayStopMaxMs / 5, timing.gatewayStopMaxMs) };
    case 'gateway-hold':
      return { kind, atMs, forMs: draw.whole(leaseMs / 2, leaseMs * 3) };
  }
}

function drawTarget(draw: Draw): Target {
  return { sender: draw.chance(0.7), worker: draw.whole(0, WORKERS - 1) };
}

/** Mostly one worker is cut off from a Redis that the others reach. */
function drawLinks(draw: Draw): readonly number[] {
  const all = Array.from({ length: WORKERS }, (_, index) => index);
  return draw.chance(0.4) ? all : [draw.one(all)];
}

class Draw {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = createRandom(seed);
  }

  whole(min: number, max: number): number {
    return Math.floor(min + this.#random() * (max - min + 1));
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  one<Item>(items: readonly Item[]): Item {
    return items[this.whole(0, items.length - 1)] as Item;
  }
}
