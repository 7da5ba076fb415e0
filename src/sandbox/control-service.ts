import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { InvalidInputError } from '../base/errors.js';
import { parseInput } from '../base/fields.js';
import { faultRuleField, type FaultRule } from './fault-rule.js';
import { sendResponse } from './response.js';
import type { Arrival, Payment, SandboxStats } from './sandbox-account.js';
import { readBody } from './read-body.js';

/**
 * Queries and controls of a sandbox, in the same process or over HTTP under `/__sandbox/`. `platformId` is optional
 * with one account.
 */
export interface SandboxControls {
  /** @throws InvalidInputError if the account does not exist; so do all calls with a `platformId` */
  stats(platformId?: number): SandboxStats;
  /** Every withdrawal that arrived, in order, with the gap before it. */
  arrivals(platformId?: number): readonly Arrival[];
  /** Every payment, in order. */
  payments(platformId?: number): readonly Payment[];
  /** The active faults and how often each has fired. */
  faults(): readonly (FaultRule & { readonly fired: number })[];
  /** Replaces all faults. @throws InvalidInputError naming the broken rule */
  setFaults(faults: readonly FaultRule[]): void;
  /** @throws InvalidInputError naming the broken rule */
  addFaults(faults: readonly FaultRule[]): void;
  unblock(platformId?: number): void;
  /** Restores an account's initial state: full balance, no payments, no statistics, not blocked. */
  reset(platformId?: number): void;
  /** Holds every response back until `continue()`. Calls still arrive and are processed. */
  pause(): void;
  continue(): void;
}

/** A running sandbox. */
export interface Sandbox extends SandboxControls, AsyncDisposable {
  /** The clients' `GATEWAY_BASE_URL`, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** The seed of this run, to repeat its latencies. */
  readonly seed: number;
  /** Closes every connection, also those that wait for a response. Safe to call twice. */
  close(): Promise<void>;
}

export const CONTROL_PREFIX = '/__sandbox/';

const faultsBody = z
  .strictObject({
    add: z.array(faultRuleField).optional(),
    replace: z.array(faultRuleField).optional(),
    clear: z.literal(true).optional(),
  })
  .refine((body) => Object.keys(body).length === 1, {
    error: 'must be one of {"add": [faults]}, {"replace": [faults]} and {"clear": true}',
  });

type Action = (controls: SandboxControls, platformId: number | undefined, body: unknown) => object;

/** Not part of the gateway's API. */
const ACTIONS: Readonly<Record<string, Action>> = {
  'GET stats': (controls, platformId) => controls.stats(platformId),
  'GET arrivals': (controls, platformId) => ({ arrivals: controls.arrivals(platformId) }),
  'GET payments': (controls, platformId) => ({ payments: controls.payments(platformId) }),
  'GET faults': (controls) => ({ faults: controls.faults() }),
  'POST faults': (controls, _platformId, body) => {
    const { add, replace, clear } = parseInput(faultsBody, body);
    if (add !== undefined) controls.addFaults(add);
    if (replace !== undefined) controls.setFaults(replace);
    if (clear === true) controls.setFaults([]);
    return { faults: controls.faults() };
  },
  'POST unblock': (controls, platformId) => {
    controls.unblock(platformId);
    return { ok: true };
  },
  'POST reset': (controls, platformId) => {
    controls.reset(platformId);
    return { ok: true };
  },
  'POST pause': (controls) => {
    controls.pause();
    return { ok: true };
  },
  'POST continue': (controls) => {
    controls.continue();
    return { ok: true };
  },
};

/** Serves JSON calls under `/__sandbox/`; bad ones get status 400 and the problem. */
export async function serveControl(
  controls: SandboxControls,
  target: { readonly name: string; readonly query: URLSearchParams },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request);
  const action = ACTIONS[`${request.method ?? ''} ${target.name}`];
  if (action === undefined) {
    const error = `no such control; there are: ${Object.keys(ACTIONS).join(', ')}`;
    sendResponse(request, response, { status: 404, body: { error } });
    return;
  }
  try {
    const result = action(
      controls,
      parsePlatformId(target.query),
      body instanceof Buffer ? parseJson(body) : undefined,
    );
    sendResponse(request, response, { status: 200, body: { ...result } });
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    sendResponse(request, response, { status: 400, body: { error: error.message } });
  }
}

function parsePlatformId(query: URLSearchParams): number | undefined {
  const text = query.get('platformId');
  return text === null ? undefined : Number(text);
}

function parseJson(body: Buffer): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new InvalidInputError([{ field: 'body', message: 'must be JSON' }]);
  }
}
