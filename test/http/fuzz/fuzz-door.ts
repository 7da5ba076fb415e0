import fc from 'fast-check';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request as send } from 'node:http';
import { ROUTES } from '../../../src/http/routes.js';
import { REPLY_SCHEMAS } from '../../../src/http/schemas.js';

/** Requests made from the OpenAPI document of a door: as it says, nearly as it says, and not at all as it says. */

interface Schema {
  readonly type?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Schema } } };
  readonly responses: Readonly<Record<string, unknown>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface FuzzedRequest {
  readonly method: string;
  /** As the document names it. */
  readonly route?: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

const BATCH = 500;

/** One of several, each as often as its weight says. */
function weighted<Value>(...choices: readonly (readonly [weight: number, fc.Arbitrary<Value>])[]) {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

const mostly = <Value>(usual: readonly Value[], ...strange: readonly Value[]): fc.Arbitrary<Value> =>
  weighted([8, fc.constantFrom(...usual)], [1, fc.constantFrom(...strange)]);

/** Few, so that payouts meet again: conflicts, cancellations, lists. */
const payoutId = fc.oneof(
  fc.nat(3).map((index) => `f-${index}`),
  fc.stringMatching(/^[A-Za-z0-9+/=\-:.,_]{1,64}$/),
);

const strangeText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.constantFrom('', ' ', '\u0000', '\ud800', '__proto__', '%', '%2e%2e', '\r\nX: y', 'NaN', '1e400'),
  // What a terminal or a page would obey: C1, and the direction of text.
  fc.constantFrom('a\u009b31m', '\u202ex', '\u2066x', '\u0085'),
);

const strangeValue: fc.Arbitrary<unknown> = fc.oneof(
  strangeText,
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, 0, -1, 1e308, 12.5, [], {}, 'x'.repeat(5_000)),
  fc.integer({ min: 1, max: 2_000 }).map((depth) => JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as unknown),
);

function valueOf(schema: Schema, name = ''): fc.Arbitrary<unknown> {
  const { type, minimum, exclusiveMinimum = 0, maximum = 100, items = {}, properties = {}, required = [] } = schema;
  if (name === 'payoutId') return payoutId;
  if (name === 'addressTo') return mostly(['TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf'], 'x', ' ', 'r:1', 'a b');
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => valueOf(one, name)));
  if (type === 'string') return textOf(schema);
  if (type === 'integer') return fc.integer({ min: minimum ?? exclusiveMinimum, max: Math.min(maximum, 2 ** 31 - 1) });
  if (type === 'array') return fc.array(valueOf(items), { maxLength: 5 });
  if (type !== 'object') return fc.jsonValue({ maxDepth: 3 });
  const fields = Object.entries(properties).map(([key, each]) => [key, valueOf(each, key)] as const);
  const record = (of: typeof fields) => fc.record(Object.fromEntries(of), { requiredKeys: [...required] });
  // Of many optional fields some contradict each other, so most payouts have the required ones alone.
  return weighted([2, record(fields.filter(([key]) => required.includes(key)))], [1, record(fields)]);
}

function textOf({ pattern }: Schema): fc.Arbitrary<string> {
  if (pattern === undefined) return fc.string({ maxLength: 60 });
  try {
    return fc.stringMatching(new RegExp(pattern));
  } catch {
    // Character classes that the library does not know.
    return fc.stringMatching(/^[A-Za-z0-9 ]{1,20}$/);
  }
}

/** A valid value with a mistake at some place of it; a field that is undefined is left out. */
function spoiled(valid: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(valid, strangeValue, strangeText, fc.nat()).map(([value, strange, name, choice]) => {
    if (Array.isArray(value)) return [...(value as unknown[]), strange];
    if (typeof value !== 'object' || value === null) return strange;
    const names = [...Object.keys(value), name];
    return { ...value, [names[choice % names.length] ?? name]: choice % 4 === 0 ? undefined : strange };
  });
}

function bodyOf({ requestBody }: Operation): fc.Arbitrary<string | undefined> {
  if (requestBody === undefined) return fc.constant(undefined);
  const valid = valueOf(requestBody.content['application/json'].schema);
  const text = (value: unknown): string | undefined => JSON.stringify(value);
  return weighted([4, valid.map(text)], [4, spoiled(valid).map(text)], [1, strangeText]);
}

function pathOf(route: string, { parameters }: Operation): fc.Arbitrary<string> {
  const id = weighted(
    [6, payoutId.map(encodeURIComponent)],
    [1, fc.constantFrom('%', '%ff', '%00', '..', '%2e%2e', 'a%2fb', '~', 'x'.repeat(3_000))],
    [1, fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }).map(encodeURIComponent)],
  );
  const known = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema }) =>
      fc.tuple(fc.constant(name), weighted([4, valueOf(schema).map(String)], [1, strangeText])),
    );
  const any = fc.tuple(strangeText, strangeText);
  const pair = known.length === 0 ? any : weighted([6, fc.oneof(...known)], [1, any]);
  // A lone surrogate has no encoding.
  const encode = (text: string) => encodeURIComponent(text.toWellFormed());
  const query = fc
    .array(pair, { maxLength: known.length === 0 ? 1 : 3 })
    .map((pairs) => pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&'));
  return fc.tuple(id, query).map(([own, text]) => `${route.replace('{payoutId}', own)}${text && `?${text}`}`);
}

function requestsOf({ paths }: OpenApi, tokens: readonly string[]): fc.Arbitrary<FuzzedRequest> {
  const [first = ''] = tokens;
  const token = mostly(
    [...tokens, first, first, first].map((each) => `Bearer ${each}`),
    ...['', 'Bearer', 'Bearer x', 'Basic eDp5', `bearer ${first}`, `Bearer ${'y'.repeat(200)}`],
  );
  const type = mostly(
    ['application/json'],
    '',
    'text/plain',
    'application/json; charset=x',
    ';',
    `application/json${' '.repeat(6_000)}x`,
  );
  const extra = mostly<Record<string, string>>(
    [{}],
    ...[{ 'last-event-id': 'x' }, { 'content-encoding': 'gzip' }, { expect: '100-continue' }],
  );
  const operations = Object.entries(paths).flatMap(([route, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      fc
        .tuple(pathOf(route, operation), token, type, extra, bodyOf(operation))
        .map(([path, authorization, contentType, others, body]): FuzzedRequest => ({
          ...{ method: method.toUpperCase(), route, path, body },
          headers: { authorization, ...(body === undefined ? {} : { 'content-type': contentType }), ...others },
        })),
    ),
  );
  const methods = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD');
  const anyPath = fc.oneof(fc.webPath({ size: 'small' }), fc.constantFrom(...Object.keys(paths)));
  const elsewhere = fc.tuple(methods, anyPath, token).map(([method, path, authorization]): FuzzedRequest => ({
    ...{ method, path: path === '' ? '/' : path, headers: { authorization } },
    ...(Object.hasOwn(paths, path) && { route: path }),
  }));
  return weighted([12, fc.oneof(...operations)], [1, elsewhere]);
}

/**
 * Sends requests that are made from the door's own document.
 * @param seed - makes the same requests again
 * @returns how many responses had each status, those that the document does not allow, and the payouts accepted
 */
export async function fuzzDoor(
  url: string,
  tokens: readonly string[],
  { requests, seed }: { readonly requests: number; readonly seed: number },
) {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  const arbitrary = requestsOf(document, tokens);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const statuses = new Map<number, number>();
  const wrong: string[] = [];
  const accepted = new Set<string>();
  const ask = async (request: FuzzedRequest): Promise<void> => {
    const response = await exchange(url, request, agent).catch((error: unknown) => String(error));
    const problem = typeof response === 'string' ? response : findProblem(document, request, response);
    if (problem !== undefined) wrong.push(`${problem}: ${JSON.stringify(request).slice(0, 600)}`);
    if (typeof response === 'string') return;
    const { status, text } = response;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (request.method !== 'POST' || status > 201) return;
    for (const [, id = ''] of text.matchAll(/"payoutId":"([^"]+)","state":"\w+","created":/g)) accepted.add(id);
  };
  for (let done = 0; done < requests; done += BATCH) {
    const numRuns = Math.min(BATCH, requests - done);
    await Promise.all(fc.sample(arbitrary, { numRuns, seed: seed + done }).map(ask));
  }
  agent.destroy();
  return { statuses, wrong, accepted };
}

type FuzzedResponse = Awaited<ReturnType<typeof exchange>>;

async function exchange(url: string, { body, ...request }: FuzzedRequest, agent: Agent) {
  const { hostname, port } = new URL(url);
  const sent = send({ hostname, port, ...request, agent, timeout: 30_000 });
  sent.once('timeout', () => sent.destroy(new Error('no response within 30 s')));
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const { statusCode: status = 0, headers } = response;
  const type = headers['content-type'] ?? '';
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += String(chunk);
    // An open stream has no end.
    if (type === 'text/event-stream') break;
  }
  return { status, type, text };
}

function findProblem({ paths }: OpenApi, { method, route = '' }: FuzzedRequest, response: FuzzedResponse) {
  const { status, type, text } = response;
  if (status >= 500) return `${status} ${text}`;
  // Node's own answer to headers of more than 16 kB, which the door never sees.
  if (status === 431 && text === '') return undefined;
  if (/[\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(text))
    return `raw characters in ${JSON.stringify(text)}`;
  const allowed = paths[route]?.[method.toLowerCase()]?.responses[status];
  if (allowed === undefined && status !== 404 && status !== 405) return `status ${status} is not in the document`;
  if (method === 'HEAD' || type === 'text/event-stream') return undefined;
  if (status >= 400 && type !== 'application/problem+json') return `a problem of type ${type}`;
  const served = ROUTES.find((each) => each.method === method && each.path === route);
  const schema = status < 400 && served !== undefined ? REPLY_SCHEMAS[served.schema] : REPLY_SCHEMAS.Problem;
  return schema.safeParse(JSON.parse(text)).success ? undefined : `not what the document says: ${text.slice(0, 300)}`;
}
