import fc from 'fast-check';
import { Agent, request as send } from 'node:http';
import type { z } from 'zod';
import { REPLY_SCHEMAS } from '../../../src/http/schemas.js';
import { type FuzzedRequest, type OpenApi, requestsOf } from './make-requests.js';

interface FuzzedResponse {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

const BATCH = 500;
const AT_ONCE = 16;

/** What a good answer is, beside the status. */
const BODIES: Readonly<Record<string, z.ZodType>> = {
  'POST /v1/payouts': REPLY_SCHEMAS.Accepted,
  'GET /v1/payouts': REPLY_SCHEMAS.Page,
  'GET /v1/payouts/{payoutId}': REPLY_SCHEMAS.Payout,
  'POST /v1/payouts/{payoutId}/cancel': REPLY_SCHEMAS.Payout,
  'GET /v1/stats': REPLY_SCHEMAS.Stats,
};

/**
 * Sends requests that are made from the door's own document.
 * @param seed - makes the same requests again
 * @returns how many responses had each status, those that the document does not allow, and the payouts accepted
 */
export async function fuzzDoor(
  url: string,
  tokens: readonly string[],
  { requests, seed, note = () => undefined }: { requests: number; seed: number; note?: (done: number) => void },
) {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  const arbitrary = requestsOf(document, tokens);
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const statuses = new Map<number, number>();
  const wrong: string[] = [];
  const accepted = new Set<string>();
  for (let done = 0; done < requests; done += BATCH) {
    const waiting = fc.sample(arbitrary, { numRuns: Math.min(BATCH, requests - done), seed: seed + done }).values();
    const lane = async (): Promise<void> => {
      for (const request of waiting) {
        const response = await exchange(url, request, agent).catch((error: unknown) => String(error));
        const problem = typeof response === 'string' ? response : findProblem(document, request, response);
        if (problem !== undefined) wrong.push(`${problem}: ${JSON.stringify(request).slice(0, 600)}`);
        if (typeof response === 'string') continue;
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        if (request.route === '/v1/payouts' && (response.status === 201 || response.status === 200)) {
          for (const [, id = ''] of response.text.matchAll(/"payoutId":"([^"]+)","state":"\w+","created":/g)) {
            if (request.method === 'POST') accepted.add(id);
          }
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    note(done + BATCH);
  }
  agent.destroy();
  return { statuses, wrong, accepted };
}

async function exchange(
  url: string,
  { method, path, headers, body }: FuzzedRequest,
  agent: Agent,
): Promise<FuzzedResponse> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = send({ hostname, port, method, path, headers, agent, timeout: 30_000 }, (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      const type = answered['content-type'] ?? '';
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        if (type !== 'text/event-stream') return;
        // An open stream has no end.
        resolve({ status, type, text });
        sent.destroy();
      });
      response.once('end', () => {
        resolve({ status, type, text });
      });
      response.once('error', reject);
    });
    sent.once('error', reject);
    sent.once('timeout', () => sent.destroy(new Error('no response within 30 s')));
    sent.end(body);
  });
}

function findProblem(
  { paths }: OpenApi,
  { method, route }: FuzzedRequest,
  { status, type, text }: FuzzedResponse,
): string | undefined {
  if (status >= 500) return `${status} ${text}`;
  const allowed = route === undefined ? undefined : paths[route]?.[method.toLowerCase()]?.responses;
  const isElsewhere = status === 404 || status === 405;
  if (allowed?.[status] === undefined && !isElsewhere) return `status ${status} is not in the document`;
  if (method === 'HEAD') return undefined;
  if (status >= 400) {
    if (type !== 'application/problem+json') return `a problem of type ${type}`;
    return REPLY_SCHEMAS.Problem.safeParse(JSON.parse(text)).success ? undefined : `no problem: ${text}`;
  }
  if (type === 'text/event-stream') return undefined;
  const parsed = BODIES[`${method} ${route ?? ''}`]?.safeParse(JSON.parse(text));
  return parsed?.success === true ? undefined : `not what the document says: ${text.slice(0, 300)}`;
}
