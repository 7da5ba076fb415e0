import { setTimeout as delay } from 'node:timers/promises';
import type { GatewayApi } from '../../../src/base/settings.js';
import type { DelayRange } from '../../../src/sandbox/latency.js';
import { Random } from '../../doubles/random.js';
import type { Gateway, WorkerHost, RedisServer } from './processes.js';
import type { Direction, TcpProxy } from './tcp-proxy.js';
import type { Users } from './users.js';

export const PLATFORM_ID = 1_001;
export const SECRET_KEY = 'k-chaos-0123456789';

/** With an amount and an address of its own, by which the gateway's book shows it. */
export const paymentOf = (payoutId: string) => ({
  ...{ payoutId, paymentId: 1, amount: `0.0${payoutId.replace(/\D/g, '')}1` },
  addressTo: `wallet-${payoutId.toLowerCase()}xxxxxxxxxxxxxxxxxxxxxxxx`,
});

type Timing = Readonly<{
  name: 'scaled' | 'real';
  /** See `under-chaos.mjs`. */
  timeScale: number;
  minGapMs: number;
  leaseMs: number;
  /** Where each host has a journal of its own: a worker that knows what Redis forgot objects within it. */
  ownJournalQuarantineMs: number;
  chaosMs: number;
  /** With the latency this stays far below IN_FLIGHT_MAX_MS (assumption A1). */
  gatewayStopMaxMs: number;
  latencyBeforeMs: DelayRange;
  latencyAfterMs: DelayRange;
  payouts: DelayRange;
  environment: Readonly<Record<string, string>>;
}>;

const COMMON = {
  ...{ GATEWAY_TIMEOUT_MS: '1000', TAKEOVER_QUARANTINE_MS: '1000' },
  ...{ STATUS_POLL_MIN_MS: '100', STATUS_POLL_MAX_MS: '500', STATUS_POLL_RATE: '100' },
  ...{ HEALTH_PORT: '0', LOG_LEVEL: 'debug' },
};

/**
 * An eighth of every time that is measured on the worker's clock: interval 126 ms, guard 125 ms, lease 500 ms, quarantine
 * 125 ms, in flight 1000 ms. The rules are the same, and a round takes seconds.
 */
const SCALED: Timing = {
  ...{ name: 'scaled', timeScale: 8, minGapMs: 125, leaseMs: 500 },
  ...{ ownJournalQuarantineMs: 24_000, chaosMs: 3_000, gatewayStopMaxMs: 300 },
  latencyBeforeMs: { min: 0, max: 60 },
  latencyAfterMs: { min: 0, max: 40 },
  payouts: { min: 12, max: 18 },
  environment: { ...COMMON, LEASE_MS: '4000', IN_FLIGHT_MAX_MS: '8000', WITHDRAW_TIMEOUT_MS: '600' },
};

export const REAL: Timing = {
  ...{ name: 'real', timeScale: 1, minGapMs: 1_000, leaseMs: 1_500 },
  ...{ ownJournalQuarantineMs: 6_000, chaosMs: 9_000, gatewayStopMaxMs: 700 },
  latencyBeforeMs: { min: 0, max: 300 },
  latencyAfterMs: { min: 20, max: 80 },
  payouts: { min: 9, max: 11 },
  environment: { ...COMMON, LEASE_MS: '1500', IN_FLIGHT_MAX_MS: '2000', WITHDRAW_TIMEOUT_MS: '1500' },
};

export const WORKERS = 3;

export type Stage = Readonly<{
  hosts: readonly WorkerHost[];
  links: readonly TcpProxy[];
  redis: RedisServer;
  gateway: Gateway;
  users: Users;
}>;

export type Fault = Readonly<{
  kind: Kind;
  atMs: number;
  /** When Redis is copied that comes back. */
  copyAtMs: number;
  drawn: string;
  strike(stage: Stage): Promise<void>;
}>;

type Drawn = Pick<Fault, 'drawn' | 'strike'>;

/** Mostly the one that is the sender at that moment, if that is known. */
function drawWorker(random: Random): { whom: string; find: (stage: Stage) => Promise<WorkerHost> } {
  const [isSender, worker] = [random.chance(0.7), random.whole(0, WORKERS - 1)];
  return {
    whom: isSender ? `sender|${worker}` : String(worker),
    async find({ hosts, users }) {
      const owner = isSender ? (await users.readStats())?.sender?.owner : undefined;
      return (hosts.find(({ pid }) => owner?.includes(`:${String(pid)}:`)) ?? hosts[worker]) as WorkerHost;
    },
  };
}

function drawEnd(random: Random, { leaseMs }: Timing, end: (host: WorkerHost) => Promise<void>): Drawn {
  const { whom, find } = drawWorker(random);
  const backAfterMs = random.whole(0, leaseMs * 2);
  return {
    drawn: `${whom}, back after ${backAfterMs} ms`,
    async strike(stage) {
      const host = await find(stage);
      await end(host);
      await delay(backAfterMs);
      host.startAgain();
    },
  };
}

type Trouble = (link: TcpProxy) => unknown;

function drawLinks(random: Random, ms: number, what: string, trouble: Trouble, held: 'late' | 'never' = 'late'): Drawn {
  const all = Array.from({ length: WORKERS }, (_, index) => index);
  const hit = random.chance(0.4) ? all : [random.pick(all)];
  return {
    drawn: `${what} of ${hit.join()} for ${ms} ms, then ${held}`,
    async strike(stage) {
      const links = stage.links.filter((_, worker) => hit.includes(worker));
      for (const link of links) trouble(link);
      await delay(ms);
      for (const link of links) link.heal(held);
    },
  };
}

const forMs = (ms: number, strike: (ms: number, stage: Stage) => Promise<void>): Drawn => ({
  drawn: `${ms} ms`,
  strike: async (stage) => strike(ms, stage),
});

/** Each kind in turn is the first fault of a round. */
const DRAW = {
  'worker-kill': (random, timing) => drawEnd(random, timing, async (host) => host.kill()),
  'redis-older': (random, { leaseMs }) =>
    forMs(random.whole(0, leaseMs), async (ms, { redis, users }) => {
      await redis.putBack(ms);
      users.askAgain();
    }),
  'worker-stop': (random, { leaseMs }) => {
    const { whom, find } = drawWorker(random);
    const ms = random.whole(leaseMs / 2, leaseMs * 5);
    return {
      drawn: `${whom} for ${ms} ms`,
      async strike(stage) {
        const host = await find(stage);
        host.stop();
        await delay(ms);
        host.continue();
      },
    };
  },
  'link-blackhole': (random, { leaseMs }) => {
    const directions = random.pick<Direction[]>([['requests'], ['replies'], ['requests', 'replies']]);
    const held = random.pick(['late', 'never'] as const);
    const trouble = (link: TcpProxy) => {
      link.silence(directions);
    };
    return drawLinks(random, random.whole(leaseMs / 5, leaseMs * 4), directions.join(), trouble, held);
  },
  'redis-kill': (random, { leaseMs }) =>
    forMs(random.whole(0, leaseMs * 3), async (ms, { redis }) => redis.killFor(ms)),
  'gateway-stop': (random, { gatewayStopMaxMs }) =>
    forMs(random.whole(gatewayStopMaxMs / 5, gatewayStopMaxMs), async (ms, { gateway }) => {
      gateway.stop();
      await delay(ms);
      gateway.continue();
    }),
  'link-cut': (random, { leaseMs }) =>
    drawLinks(random, random.whole(0, leaseMs * 2), 'all', (link) => {
      link.cut();
    }),
  'redis-cut-off': (random, { leaseMs }) => {
    const [ms, bytes] = [random.whole(0, leaseMs), random.whole(1, random.pick([40, 1_000, 8_000]))];
    return {
      drawn: `${bytes} bytes, back after ${ms} ms`,
      async strike({ redis, users }) {
        await redis.cutOff(ms, bytes);
        users.askAgain();
      },
    };
  },
  'link-delay': (random, { leaseMs }) =>
    drawLinks(random, random.whole(leaseMs / 2, leaseMs * 4), 'delays', (link) => {
      link.slowDown(() => (Math.random() * leaseMs) / 5);
    }),
  'gateway-hold': (random, { leaseMs }) =>
    forMs(random.whole(leaseMs / 2, leaseMs * 3), async (ms, { gateway }) => {
      await gateway.hold('pause');
      await delay(ms);
      await gateway.hold('continue');
    }),
  'worker-end': (random, timing) => drawEnd(random, timing, async (host) => host.endInGoodOrder()),
} as const satisfies Readonly<Record<string, (random: Random, timing: Timing) => Drawn>>;

type Kind = keyof typeof DRAW;
const KINDS = Object.keys(DRAW) as readonly Kind[];

const isForgetting = (kind: Kind) => kind === 'redis-older' || kind === 'redis-cut-off';
export const HARMLESS = KINDS.filter((kind) => !isForgetting(kind));

/** They keep no worker from reporting what its journal has. */
const HARMLESS_TO_OWN_JOURNALS: readonly Kind[] = ['link-delay', 'gateway-hold', 'gateway-stop', 'redis-kill'];

const REAL_EVERY = 10;
const MAX_MORE_FAULTS = 4;

export function drawFault(kind: Kind, atMs: number, timing: Timing, random: Random): Fault {
  const copyAtMs = kind === 'redis-older' ? random.whole(0, atMs) : 0;
  return { kind, atMs, copyAtMs, ...DRAW[kind](random, timing) };
}

export type Plan = ReturnType<typeof drawPlan>;

/** Each generation of the gateway's API in every other round, and in every other of the real rounds. */
const apiOf = (seed: number): GatewayApi => ((seed + Math.floor(seed / REAL_EVERY)) % 2 === 0 ? 'v2' : 'v1');

export function drawPlan(seed: number, signed: boolean, api = apiOf(seed)) {
  const random = new Random(seed);
  const timing = seed % REAL_EVERY === 0 ? REAL : SCALED;
  const first = KINDS[seed % KINDS.length] as Kind;
  /**
   * One folder for all hosts, or one each: then, where Redis forgets something, every worker runs and reaches Redis, because
   * only the one that sent knows what it forgot (docs/guarantees.md, A7).
   */
  const sharedJournal = random.chance(0.5);
  const ofOwnJournals = isForgetting(first) ? HARMLESS_TO_OWN_JOURNALS : HARMLESS;
  const kinds = [first];
  for (let more = random.whole(1, MAX_MORE_FAULTS); more > 0; more -= 1) {
    const kind = random.pick(sharedJournal ? KINDS : ofOwnJournals);
    if (kind !== 'redis-older' || !kinds.includes(kind)) kinds.push(kind);
  }
  const atMs = () => random.whole(0, timing.chaosMs);
  const faults = kinds.map((kind) => drawFault(kind, atMs(), timing, random));
  const payouts = random.whole(timing.payouts.min, timing.payouts.max);
  return {
    ...{ seed, api, timing, signed, sharedJournal, faults },
    forgets: kinds.some(isForgetting),
    enqueueAtMs: Array.from({ length: payouts }, (_, index) => (index < payouts / 2 ? -1 : atMs())),
    maxUnknownsInARow: random.pick([2, 99]),
    pauseAtMs: random.chance(0.6) ? atMs() : Infinity,
    forgetsKey: random.chance(0.4),
    /** In half of the rounds the first question comes too early. */
    orderIdKnownAfterMs: random.pick([0, 3_000]),
  };
}
