import type { EndpointName } from './endpoint-name.js';
import type { FaultKind, ParsedFaultRule } from './fault-rule.js';
import { drawDelayMs, type Random } from './latency.js';
import { failed, type SandboxResponse } from './response.js';

interface FaultTarget {
  readonly endpoint: EndpointName;
  readonly platformId: number | undefined;
  readonly addressTo: string | undefined;
}

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

  get rules(): readonly (ParsedFaultRule & { readonly fired: number })[] {
    return this.#active.map(({ rule, fired }) => ({ ...rule, fired }));
  }

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

type Fault = NonNullable<FaultStrike['fault']>;

export const BLOCKED_MESSAGE = 'account blocked';

/** The response of a fault that replaces a call's processing, if it does. */
/** @param path - of the call, without the slash in front */
export function refusalOf(fault: Fault | undefined, path: string): SandboxResponse | undefined {
  switch (fault?.kind) {
    case 'reject':
      return failed(fault.message ?? 'rejected by the sandbox');
    case 'block':
      return failed(BLOCKED_MESSAGE);
    case 'rate-429':
      return { ...failed('too many requests', 429), headers: { 'retry-after': '1' } };
    case 'redirect-307':
      return { status: 307, headers: { location: `/${path}` }, body: '' };
    default:
      return undefined;
  }
}

/** By which a response names the payment. */
const NAMES = ['txhash', 'transactionId'];

export function spoil(fault: Fault | undefined, response: SandboxResponse): SandboxResponse {
  const { body } = response;
  if (typeof body === 'string') return response;
  switch (fault?.kind) {
    case 'html-502':
      return { status: 502, body: '<html><body><h1>502 Bad Gateway</h1></body></html>' };
    case 'json-500':
      return { status: 500, body: { message: 'internal error' } };
    case 'wrong-json':
      return { status: 200, body: { status: 'ok', data: [1, 2, 3] } };
    case 'no-txhash':
      return { ...response, body: Object.fromEntries(Object.entries(body).filter(([name]) => !NAMES.includes(name))) };
    case 'string-result':
      return { ...response, body: { ...body, result: String(body['result']) } };
    default:
      return response;
  }
}
