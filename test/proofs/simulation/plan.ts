import type { Random } from '../../doubles/random.js';

export type Settings = ReturnType<typeof makeSettings>;

const FAULTS = {
  ...{ ledgerSlow: 0.05, ledgerRequestLost: 0.03, ledgerReplyLost: 0.03, kill: 0.08, pause: 0.12, stopCleanly: 1 },
  ...{ hostCrash: 0.5, journalBroken: 0.1, connectFails: 0.1, connectionEnds: 0.1, arrivesLate: 0.5, requestLost: 0.2 },
  ...{ responseLost: 0.2, responseLate: 0.3, responseUnclear: 0.2, cut: 0.5, rejected: 0.4, ringsTwice: 0.2 },
  ...{ wallJump: 1, staysInKernel: 0.3, gatewayStandsStill: 0.05 },
};
type Faults = Readonly<typeof FAULTS>;

function drawFaults(rate: (highest: number) => number): Faults {
  return Object.fromEntries(Object.entries(FAULTS).map(([fault, highest]) => [fault, rate(highest)])) as Faults;
}

export const NO_FAULTS = drawFaults(() => 0);

export type Plan = Readonly<ReturnType<typeof makePlan>>;

const DRIFT_MAX = 0.0005;

export function makePlan(random: Random) {
  const hosts = random.chance(0.35) ? 2 : 1;
  const settings = makeSettings(random, hosts);
  const rate = (highest: number) => (random.chance(0.5) ? 0 : highest * random.pick([0.1, 0.3, 1]));
  const faults = drawFaults(rate);
  const times = { ...makeTimes(random, hosts), senderLost: hosts === 2 && leaseOutlastsSends(settings) ? 1 : 0 };
  return {
    settings,
    faults,
    hosts,
    times,
    workers: hosts === 2 ? random.whole(2, 3) : random.pick([1, 2, 2, 2, 3]),
    payouts: random.whole(2, 9),
    enqueueWithinMs: random.pick([0, 5_000, 30_000]),
    faultsForMs: random.between(15_000, 60_000) + 2 * inFlightOf(settings),
    rollbackAtOnce: times.rollback > 0 && random.chance(0.5) ? 0.02 : 0,
    drift: random.pick([0, DRIFT_MAX, DRIFT_MAX]),
    earlyTimers: random.pick([0, 0.3]),
    operatorCancels: times.flush + times.deposed === 0 && random.chance(0.3),
  };
}

/**
 * Where each host has a journal of its own, the worker that knows what a Redis lost has the quarantine to say so: it must
 * be long enough for a command that gets no reply.
 */
function makeSettings(random: Random, hosts: number) {
  return {
    intervalMs: random.pick([1_002, 1_002, 1_010, 1_010]),
    guardMs: 1_000,
    leaseMs: random.pick([500, 1_000, 2_000, 5_000, 10_000]),
    quarantineMs: random.pick(hosts === 1 ? [0, 1_000, 3_000, 6_000, 10_000] : [6_000, 10_000]),
    inFlightMaxMs: random.pick([500, 2_000, 5_000, 10_000, 30_000]),
    resendsForMs: random.pick([0, 500, 2_000, 10_000, 60_000]),
    withdrawTimeoutMs: random.pick([1_000, 3_000, 10_000]),
    commandTimeoutMs: hosts === 1 ? random.pick([1_000, 5_000]) : 1_000,
  };
}

function makeTimes(random: Random, hosts: number) {
  const few = () => (random.chance(0.6) ? 0 : random.whole(1, 2));
  return {
    redisAway: few(),
    rollback: random.chance(0.5) ? 0 : random.whole(1, 4),
    flush: random.chance(0.15) ? 1 : 0,
    deposed: hosts === 1 && random.chance(0.25) ? random.whole(1, 3) : 0,
    journalLost: random.chance(0.1) ? 1 : 0,
    atRandom: random.whole(0, 4),
  };
}

/** For runs in which failovers forget: what else would forget is left to the other runs. */
export function onTwoHosts(plan: Plan): Plan {
  const { leaseMs, inFlightMaxMs } = plan.settings;
  const settings = {
    ...plan.settings,
    quarantineMs: Math.max(6_000, plan.settings.quarantineMs),
    commandTimeoutMs: 1_000,
  };
  const none = { redisAway: 0, rollback: 0, flush: 0, deposed: 0, journalLost: 0, senderLost: 0 };
  return {
    ...plan,
    settings: { ...settings, leaseMs: Math.min(leaseMs, 2_000), inFlightMaxMs: Math.min(inFlightMaxMs, 5_000) },
    ...{ hosts: 2, workers: Math.max(2, plan.workers), payouts: plan.payouts + 4, times: { ...plan.times, ...none } },
    ...{ rollbackAtOnce: 0, operatorCancels: false, enqueueWithinMs: plan.faultsForMs },
  };
}

/** Where the lease alone is lost, only the time that it was watched, and the quarantine, keep two sends apart. */
function leaseOutlastsSends(settings: Settings) {
  const { leaseMs, quarantineMs } = settings;
  return leaseMs + quarantineMs > 1.002 * inFlightOf(settings) + 1_000;
}

/** How long after its begin a request may still arrive. */
export function inFlightOf({ guardMs, resendsForMs, inFlightMaxMs }: Settings) {
  return guardMs + resendsForMs + inFlightMaxMs;
}

export function nearBoundary(random: Pick<Random, 'pick'>, settings: Settings) {
  const { intervalMs, guardMs, leaseMs, quarantineMs, inFlightMaxMs, withdrawTimeoutMs } = settings;
  const boundary = random.pick([
    ...[intervalMs, guardMs, leaseMs, quarantineMs, inFlightMaxMs, withdrawTimeoutMs],
    settings.commandTimeoutMs,
    leaseMs + quarantineMs,
    inFlightOf(settings),
    withdrawTimeoutMs + inFlightMaxMs,
    leaseMs + Math.max(quarantineMs, inFlightOf(settings)),
  ]);
  return Math.max(0, boundary + random.pick([-50, -5, -1, -0.01, 0, 0.01, 1, 5, 50, 500]));
}
