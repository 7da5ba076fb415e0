import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { InvalidInputError } from '../errors.js';
import { parseInput } from '../fields.js';
import { sendResponse } from './response.js';
import { faultRuleField } from './fault-rule.js';
import type { SandboxControls } from './sandbox.js';
import { readBody } from './signed-form.js';

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

/** The actions by method and name; none of them is part of the gateway's API. */
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

/** Serves the calls under `/__sandbox/` in JSON, bad ones with status 400 and what is wrong. */
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
