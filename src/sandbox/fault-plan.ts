import { drawDelayMs } from './latency.js';
import type { EndpointName } from './endpoint.js';
import type { FaultKind, ParsedFaultRule } from './fault-rule.js';
import type { Random } from './latency.js';

/** The properties of a call that rules match. */
export interface FaultTarget {
  readonly endpoint: EndpointName;
  readonly platformId: number | undefined;
  readonly addressTo: string | undefined;
}

/** What happens to one call. */
export interface FaultStrike {
  readonly latencyBeforeMs: number;
  readonly latencyAfterMs: number;
  readonly fault: { readonly kind: FaultKind; readonly message: string | undefined } | undefined;
  /** Every kind that applied, latencies included. */
  readonly kinds: readonly FaultKind[];
}

interface ActiveRule {
  readonly rule: ParsedFaultRule;
  seen: number;
  fired: number;
}

/** The rules in force, each with its own count of calls. */
export class FaultPlan {
  readonly #random: Random;
  #active: ActiveRule[] = [];

  constructor(random: Random, rules: readonly ParsedFaultRule[]) {
    this.#random = random;
    this.add(rules);
  }

  add(rules: readonly ParsedFaultRule[]): void {
    this.#active.push(...rules.map((rule) => ({ rule, seen: 0, fired: 0 })));
  }

  replace(rules: readonly ParsedFaultRule[]): void {
    this.#active = [];
    this.add(rules);
  }

  /** The rules in force and how often each has fired. */
  get rules(): readonly (ParsedFaultRule & { readonly fired: number })[] {
    return this.#active.map(({ rule, fired }) => ({ ...rule, fired }));
  }

  /** Counts the call and decides what happens to it. */
  strike(target: FaultTarget): FaultStrike {
    let [latencyBeforeMs, latencyAfterMs] = [0, 0];
    let fault: FaultStrike['fault'];
    const kinds: FaultKind[] = [];
    for (const active of this.#active) {
      if (!isDue(active, target)) continue;
      const { kind, delayMs, message } = active.rule;
      const drawnMs = delayMs === undefined ? 0 : drawDelayMs(delayMs, this.#random);
      if (kind === 'latency-before') latencyBeforeMs += drawnMs;
      else if (kind === 'latency-after') latencyAfterMs += drawnMs;
      else if (fault === undefined) fault = { kind, message };
      else continue;
      active.fired += 1;
      kinds.push(kind);
    }
    return { latencyBeforeMs, latencyAfterMs, fault, kinds };
  }
}

function isDue(active: ActiveRule, target: FaultTarget): boolean {
  const { endpoint, platformId, addresses, every, times } = active.rule;
  if (endpoint !== 'any' && endpoint !== target.endpoint) return false;
  if (platformId !== undefined && platformId !== target.platformId) return false;
  if (addresses !== undefined && (target.addressTo === undefined || !addresses.includes(target.addressTo)))
    return false;
  active.seen += 1;
  return (every === undefined || active.seen % every === 0) && (times === undefined || active.fired < times);
}
