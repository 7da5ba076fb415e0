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
  readonly minLength?: number;
  readonly maxLength?: number;
}

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Schema } } };
  readonly responses: Readonly<Record<string, unknown>>;
}

export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Few, so that payouts meet again: conflicts, cancellations, lists. */
const payoutId = fc.oneof(
  fc.nat(8).map((index) => `f-${index}`),
  fc.stringMatching(/^[A-Za-z0-9+/=\-:.,_]{1,64}$/),
);

const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

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
  if (name === 'addressTo') return fc.oneof({ weight: 9, arbitrary: fc.constant(WALLET) }, textOf(schema));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => valueOf(one, name)));
  switch (schema.type) {
    case 'string':
      return textOf(schema);
    case 'integer':
      return fc.integer({
        min: schema.minimum ?? schema.exclusiveMinimum ?? 0,
        max: Math.min(schema.maximum ?? 100, 2 ** 31 - 1),
      });
    case 'array':
      return fc.array(valueOf(schema.items ?? {}), { maxLength: 5 });
    case 'object': {
      const fields = Object.entries(schema.properties ?? {}).map(([key, each]) => [key, valueOf(each, key)] as const);
      const required = [...(schema.required ?? [])];
      // Of many optional fields some contradict each other, so most payouts have the required ones alone.
      const least = fields.filter(([key]) => required.includes(key));
      return fc.oneof(
        { weight: 2, arbitrary: fc.record(Object.fromEntries(least), { requiredKeys: required }) },
        { weight: 1, arbitrary: fc.record(Object.fromEntries(fields), { requiredKeys: required }) },
      );
    }
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function textOf({ pattern, minLength = 0, maxLength = 300 }: Schema): fc.Arbitrary<string> {
  if (pattern === undefined) return fc.string({ minLength, maxLength: Math.min(maxLength, 60) });
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
  return fc.oneof(
    { weight: 4, arbitrary: valid.map(text) },
    { weight: 4, arbitrary: spoiled(valid).map(text) },
    { weight: 1, arbitrary: fc.tuple(valid, fc.nat(60)).map(([value, cut]) => text(value)?.slice(0, -cut)) },
    { weight: 1, arbitrary: fc.oneof(strangeValue.map(text), strangeText, fc.constant(undefined)) },
  );
}

function pathOf(route: string, { parameters }: Operation): fc.Arbitrary<string> {
  const encoded = fc.oneof(
    { weight: 6, arbitrary: payoutId.map(encodeURIComponent) },
    { weight: 1, arbitrary: fc.constantFrom('%', '%ff', '%00', '..', '%2e%2e', 'a%2fb', '~', 'x'.repeat(3_000)) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }).map(encodeURIComponent) },
  );
  const known = parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema }) =>
      fc.tuple(
        fc.constant(name),
        fc.oneof({ weight: 4, arbitrary: valueOf(schema).map(String) }, { weight: 1, arbitrary: strangeText }),
      ),
    );
  const any = fc.tuple(strangeText, strangeText);
  const pair =
    known.length === 0 ? any : fc.oneof({ weight: 6, arbitrary: fc.oneof(...known) }, { weight: 1, arbitrary: any });
  const query = fc
    .array(pair, { maxLength: known.length === 0 ? 1 : 3 })
    .map((pairs) => pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&'));
  return fc
    .tuple(encoded, query)
    .map(([id, search]) => `${route.replace('{payoutId}', id)}${search === '' ? '' : `?${search}`}`);
}

/** A lone surrogate has no encoding. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Mostly one of the usual values, sometimes a strange one. */
function mostly<Value>(usual: readonly Value[], ...strange: readonly Value[]): fc.Arbitrary<Value> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...usual) },
    { weight: 1, arbitrary: fc.constantFrom(...strange) },
  );
}

const TYPES = [
  '',
  'text/plain',
  'application/json;charset=utf-8',
  'application/json; charset=x',
  'multipart/form-data',
];

/** @param tokens - of the door, with different rights */
export function requestsOf({ paths }: OpenApi, tokens: readonly string[]): fc.Arbitrary<FuzzedRequest> {
  const [first = ''] = tokens;
  const token = mostly(
    [...tokens, first, first, first].map((each) => `Bearer ${each}`),
    ...['', 'Bearer', 'Bearer x', 'Basic eDp5', `bearer ${first}`, `Bearer ${'y'.repeat(200)}`],
  );
  const type = mostly(['application/json'], ...TYPES, ';');
  const extra = mostly<Record<string, string>>(
    [{}],
    { 'last-event-id': '0-0' },
    { 'last-event-id': 'x' },
    { 'content-encoding': 'gzip' },
    { 'x-forwarded-proto': 'http' },
    { expect: '100-continue' },
  );
  const operations = Object.entries(paths).flatMap(([route, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const { requestBody } = operation;
      const body =
        requestBody === undefined ? fc.constant(undefined) : bodyOf(requestBody.content['application/json'].schema);
      return fc
        .tuple(pathOf(route, operation), token, type, extra, body)
        .map(([path, authorization, contentType, others, text]): FuzzedRequest => ({
          method: method.toUpperCase(),
          route,
          path,
          headers: { authorization, ...(text === undefined ? {} : { 'content-type': contentType }), ...others },
          body: text,
        }));
    }),
  );
  const elsewhere = fc
    .tuple(
      fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'),
      fc.oneof(fc.webPath({ size: 'small' }), fc.constantFrom(...Object.keys(paths))),
      token,
    )
    .map(([method, path, authorization]): FuzzedRequest => ({
      method,
      route: Object.hasOwn(paths, path) ? path : undefined,
      path: path === '' ? '/' : path,
      headers: { authorization },
      body: undefined,
    }));
  return fc.oneof({ weight: 12, arbitrary: fc.oneof(...operations) }, { weight: 1, arbitrary: elsewhere });
}
