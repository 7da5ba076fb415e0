import { z } from 'zod';
import { readVersion } from '../base/version.js';
import { type Route, ROUTES } from './routes.js';
import {
  acceptedSchema,
  bulkSchema,
  cancelBody,
  eventSchema,
  pageSchema,
  payoutsBody,
  payoutSchema,
  problemSchema,
  statsSchema,
} from './schemas.js';

/** The OpenAPI document, made from the schemas that check requests. */

interface Description {
  readonly id: string;
  readonly summary: string;
  readonly body?: object;
  readonly isBodyOptional?: true;
  readonly replies: Readonly<Record<number, string>>;
  /** Of each reply. */
  readonly schema: object;
  readonly type?: string;
  readonly refusals: readonly number[];
}

const PROBLEM_TEXT: Readonly<Record<number, string>> = {
  400: 'A field breaks a rule; nothing was changed',
  401: 'No token, or one that does not count',
  403: 'The token lacks the right, or the connection is not protected',
  404: 'The account has no such payout',
  409: 'The payoutId exists with other data, or the state forbids it',
  413: 'The body is too large',
  415: 'The body is not JSON',
  422: 'A signature is missing, or the record was altered',
  429: 'The limit a minute of the token is reached',
  503: 'Redis is unavailable; asking again is safe',
};

const ALWAYS = [400, 401, 403, 429, 503];

const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  'POST /v1/payouts': {
    id: 'enqueue',
    summary: 'Enqueue one payout, or up to 1,000. The same payoutId with the same data is the same payout',
    body: requestSchema(payoutsBody),
    replies: { 201: 'At least one was created', 200: 'All were there with the same data' },
    schema: { anyOf: [schemaOf(acceptedSchema), schemaOf(bulkSchema)] },
    refusals: [409, 413, 415, 422],
  },
  'GET /v1/payouts': {
    id: 'list',
    summary: 'List the payouts in a state, or of a batch, by page',
    replies: { 200: 'A page; `next` is the cursor of the next one' },
    schema: reference('Page'),
    refusals: [],
  },
  'GET /v1/payouts/{payoutId}': {
    id: 'get',
    summary: 'Get a payout with its history',
    replies: { 200: 'The payout' },
    schema: reference('Payout'),
    refusals: [404],
  },
  'POST /v1/payouts/{payoutId}/cancel': {
    id: 'cancel',
    summary: 'Cancel a payout that is queued or held, or give up a rejected one',
    body: requestSchema(cancelBody),
    isBodyOptional: true,
    replies: { 200: 'The cancelled payout' },
    schema: reference('Payout'),
    refusals: [404, 409, 413, 415],
  },
  'GET /v1/stats': {
    id: 'stats',
    summary: 'Count payouts by state, and say whether the account is paused',
    replies: { 200: 'The account' },
    schema: schemaOf(statsSchema),
    refusals: [],
  },
  'GET /v1/events': {
    id: 'events',
    summary: 'Follow the events of the account: in order, each at least once. `Last-Event-ID` counts before `after`',
    replies: { 200: 'Server-sent events; the data of each is an Event' },
    schema: reference('Event'),
    type: 'text/event-stream',
    refusals: [],
  },
};

export function renderOpenApi(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) (paths[route.path] ??= {})[route.method.toLowerCase()] = describe(route);
  return {
    openapi: '3.1.0',
    info: { title: 'payout-queue', version: readVersion(), description: 'Amounts are decimal strings.' },
    paths,
    components: {
      schemas: {
        Payout: schemaOf(payoutSchema),
        Page: schemaOf(pageSchema),
        Event: schemaOf(eventSchema),
        Problem: schemaOf(problemSchema),
      },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    security: [{ token: [] }],
  };
}

function describe({ method, path, right, query }: Route): object {
  const description = DESCRIPTIONS[`${method} ${path}`];
  if (description === undefined) throw new Error(`${method} ${path} has no description`);
  const { id, summary, body, isBodyOptional, replies, schema, type = 'application/json', refusals } = description;
  const { properties = {} } = requestSchema(query) as { readonly properties?: Readonly<Record<string, object>> };
  const responses = Object.entries(replies).map(([status, text]) => [status, response(text, type, schema)]);
  const problems = [...ALWAYS, ...refusals].map((status) => [
    status,
    response(PROBLEM_TEXT[status], 'application/problem+json', reference('Problem')),
  ]);
  return {
    operationId: id,
    summary,
    description: `Needs the right \`${right}\`.`,
    parameters: [
      ...(path.includes('{payoutId}') ? [parameter('payoutId', 'path', { type: 'string' })] : []),
      ...Object.entries(properties).map(([name, rule]) => parameter(name, 'query', rule)),
    ],
    ...(body && {
      requestBody: { required: isBodyOptional !== true, content: { 'application/json': { schema: body } } },
    }),
    responses: Object.fromEntries([...responses, ...problems]) as object,
  };
}

function response(description: string | undefined, type: string, schema: object): object {
  return { description, content: { [type]: { schema } } };
}

function parameter(name: string, place: 'path' | 'query', schema: object): object {
  return { name, in: place, required: place === 'path', schema };
}

function reference(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function requestSchema(schema: z.ZodType): object {
  return withoutDialect(
    z.toJSONSchema(schema, {
      io: 'input',
      unrepresentable: 'any',
      // JSON has no Date: of a Date or a text, the text remains.
      override: ({ jsonSchema }) => {
        const { anyOf } = jsonSchema;
        const shown = anyOf?.filter((one) => Object.keys(one).length > 0);
        if (shown === undefined || shown.length === anyOf?.length || shown[0] === undefined) return;
        delete jsonSchema.anyOf;
        Object.assign(jsonSchema, shown[0]);
      },
    }),
  );
}

function schemaOf(schema: z.ZodType): object {
  return withoutDialect(z.toJSONSchema(schema, { io: 'output' }));
}

function withoutDialect(schema: z.core.JSONSchema.BaseSchema): object {
  delete schema.$schema;
  return schema;
}
