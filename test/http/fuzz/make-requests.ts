import fc from 'fast-check';

/** Requests made from the OpenAPI document: as it says, nearly as it says, and not at all as it says. */

export interface FuzzedRequest {
  readonly method: string;
  /** As the document names it; undefined for one that it does not have. */
  readonly route: string | undefined;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

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

/** One of several, each as often as its weight says. */
function weighted<Value>(...choices: readonly (readonly [weight: number, fc.Arbitrary<Value>])[]) {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

/** Mostly one of the usual values, sometimes a strange one. */
function mostly<Value>(usual: readonly Value[], ...strange: readonly Value[]): fc.Arbitrary<Value> {
  return weighted([8, fc.constantFrom(...usual)], [1, fc.constantFrom(...strange)]);
}

/** Few, so that payouts meet again: conflicts, cancellations, lists. */
const payoutId = fc.oneof(
  fc.nat(8).map((index) => `f-${index}`),
  fc.stringMatching(/^[A-Za-z0-9+/=\-:.,_]{1,64}$/),
);

const wallet = fc.constant('TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf');

const STRANGE = ['', ' ', '\u0000', '\ud800', '\u202e', '__proto__', 'constructor', '%', '%2e%2e', "'--", '${x}'];

const strangeText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.constantFrom(...STRANGE, '\r\nX: y', 'NaN', '1e400'),
);

const strangeValue: fc.Arbitrary<unknown> = fc.oneof(
  strangeText,
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(null, true, 0, -1, 1e308, 12.5, [], {}, [[]], 'x'.repeat(5_000)),
  fc.integer({ min: 1, max: 2_000 }).map((depth) => {
    let value: unknown = 1;
    for (let level = 0; level < depth; level += 1) value = [value];
    return value;
  }),
);

function valueOf(schema: Schema, name = ''): fc.Arbitrary<unknown> {
  if (name === 'payoutId') return payoutId;
  if (name === 'addressTo') return weighted([9, wallet], [1, textOf(schema)]);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => valueOf(one, name)));
  const { minimum, exclusiveMinimum, maximum = 100, items = {}, properties = {}, required = [] } = schema;
  switch (schema.type) {
    case 'string':
      return textOf(schema);
    case 'integer':
      return fc.integer({ min: minimum ?? exclusiveMinimum ?? 0, max: Math.min(maximum, 2 ** 31 - 1) });
    case 'array':
      return fc.array(valueOf(items), { maxLength: 5 });
    case 'object': {
      const fields = Object.entries(properties).map(([key, each]) => [key, valueOf(each, key)] as const);
      // Of many optional fields some contradict each other, so most payouts have the required ones alone.
      const least = fields.filter(([key]) => required.includes(key));
      const record = (of: typeof fields) => fc.record(Object.fromEntries(of), { requiredKeys: [...required] });
      return weighted([2, record(least)], [1, record(fields)]);
    }
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
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

/** A valid value, and then a mistake at some place of it. */
function spoiled(valid: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(valid, strangeValue, strangeText, fc.nat()).map(([value, strange, name, choice]) => {
    if (Array.isArray(value)) return [...(value as unknown[]), strange];
    if (typeof value !== 'object' || value === null) return strange;
    const names = Object.keys(value);
    const chosen = names[choice % Math.max(1, names.length)] ?? name;
    const rest = Object.fromEntries(Object.entries(value).filter(([key]) => key !== chosen));
    return choice % 4 === 0 ? rest : { ...rest, [choice % 4 === 1 ? name : chosen]: strange };
  });
}

function bodyOf(schema: Schema): fc.Arbitrary<string | undefined> {
  const valid = valueOf(schema);
  const text = (value: unknown): string | undefined => JSON.stringify(value);
  const cut = fc.tuple(valid, fc.nat(60)).map(([value, by]) => text(value)?.slice(0, -by));
  const other = fc.oneof(strangeValue.map(text), strangeText, fc.constant(undefined));
  return weighted([4, valid.map(text)], [4, spoiled(valid).map(text)], [1, cut], [1, other]);
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
  const encode = (text: string): string => encodeURIComponent(text.toWellFormed());
  const query = fc
    .array(pair, { maxLength: known.length === 0 ? 1 : 3 })
    .map((pairs) => pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&'));
  return fc.tuple(id, query).map(([own, text]) => `${route.replace('{payoutId}', own)}${text && `?${text}`}`);
}

/** @param tokens - of the door, with different rights */
export function requestsOf({ paths }: OpenApi, tokens: readonly string[]): fc.Arbitrary<FuzzedRequest> {
  const [first = ''] = tokens;
  const token = mostly(
    [...tokens, first, first, first].map((each) => `Bearer ${each}`),
    ...['', 'Bearer', 'Bearer x', 'Basic eDp5', `bearer ${first}`, `Bearer ${'y'.repeat(200)}`],
  );
  const type = mostly(
    ['application/json'],
    ...['', 'text/plain', 'application/json;charset=utf-8', 'application/json; charset=x', 'multipart/form-data', ';'],
  );
  const extra = mostly<Record<string, string>>(
    [{}],
    ...[{ 'last-event-id': '0-0' }, { 'last-event-id': 'x' }, { 'content-encoding': 'gzip' }],
    ...[{ 'x-forwarded-proto': 'http' }, { expect: '100-continue' }],
  );
  const operations = Object.entries(paths).flatMap(([route, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const schema = operation.requestBody?.content['application/json'].schema;
      const text = schema === undefined ? fc.constant(undefined) : bodyOf(schema);
      return fc
        .tuple(pathOf(route, operation), token, type, extra, text)
        .map(([path, authorization, contentType, others, body]): FuzzedRequest => ({
          ...{ method: method.toUpperCase(), route, path, body },
          headers: { authorization, ...(body === undefined ? {} : { 'content-type': contentType }), ...others },
        }));
    }),
  );
  const methods = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD');
  const anyPath = fc.oneof(fc.webPath({ size: 'small' }), fc.constantFrom(...Object.keys(paths)));
  const elsewhere = fc.tuple(methods, anyPath, token).map(([method, path, authorization]): FuzzedRequest => ({
    ...{ method, route: Object.hasOwn(paths, path) ? path : undefined, path: path === '' ? '/' : path },
    ...{ headers: { authorization }, body: undefined },
  }));
  return weighted([12, fc.oneof(...operations)], [1, elsewhere]);
}
