import { z } from 'zod';
import { readVersion } from '../base/version.js';
import { type Route, ROUTES } from './routes.js';
import { REPLY_SCHEMAS } from './schemas.js';

/** The OpenAPI document, made from the schemas that check requests. */

type Texts = Readonly<Record<number, string>>;

const PROBLEMS: Texts = {
  400: 'A field breaks a rule; nothing was changed',
  401: 'No token, or one that does not count',
  403: 'The token lacks the right, or the connection is not protected',
  422: 'A signature is missing, or the record was altered',
  429: 'The limit a minute of the token is reached',
  503: 'Redis is unavailable; asking again is safe',
};
const PROBLEMS_OF_ID: Texts = { 404: 'The account has no such payout' };
const PROBLEMS_OF_POST: Texts = {
  409: 'The payoutId exists with other data, or the state forbids it',
  413: 'The body is too large',
  415: 'The body is not JSON',
};

export function renderOpenApi(): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of ROUTES) (paths[route.path] ??= {})[route.method.toLowerCase()] = describe(route);
  const schemas = Object.entries(REPLY_SCHEMAS).map(([name, schema]) => [name, schemaOf(schema, { io: 'output' })]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'payout-queue',
      version: readVersion(),
      description: 'Amounts are decimal strings.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The door that serves this document' }],
    paths,
    components: {
      schemas: Object.fromEntries(schemas) as object,
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    security: [{ token: [] }],
  };
}

function describe({ method, path, right, query, handle, summary, body, replies = { 200: 'OK' }, schema }: Route) {
  const { properties = {} } = (query && requestSchema(query)) ?? {};
  const hasId = path.includes('{payoutId}');
  const problems = { ...PROBLEMS, ...(hasId && PROBLEMS_OF_ID), ...(method === 'POST' && PROBLEMS_OF_POST) };
  const type = schema === 'Event' ? 'text/event-stream' : 'application/json';
  return {
    operationId: handle.name,
    summary,
    description: `Needs the right \`${right}\`.`,
    parameters: [
      ...(hasId ? [parameter('payoutId', 'path', { type: 'string' })] : []),
      ...Object.entries(properties).map(([name, rule]) => parameter(name, 'query', rule)),
    ],
    ...(body && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: { 'application/json': { schema: requestSchema(body) } },
      },
    }),
    responses: { ...responses(replies, type, schema), ...responses(problems, 'application/problem+json', 'Problem') },
  };
}

const ASK_AGAIN = [429, 503];
const RETRY_AFTER = { description: 'After how many seconds to ask again', schema: { type: 'integer' } };

function responses(texts: Texts, type: string, name: string): object {
  const content = { [type]: { schema: { $ref: `#/components/schemas/${name}` } } };
  const describeResponse = ([status, description]: [string, string]) => {
    const headers = ASK_AGAIN.includes(Number(status)) ? { headers: { 'Retry-After': RETRY_AFTER } } : {};
    return [status, { description, ...headers, content }] as const;
  };
  return Object.fromEntries(Object.entries(texts).map(describeResponse));
}

function parameter(name: string, location: 'path' | 'query', schema: unknown): object {
  return { name, in: location, required: location === 'path', schema };
}

function requestSchema(schema: z.ZodType) {
  return schemaOf(schema, {
    io: 'input',
    unrepresentable: 'any',
    // JSON has no Date: of a Date or a text, the text remains.
    override: ({ jsonSchema }) => {
      // A number in a query is a text with a pattern for the parser only.
      if (jsonSchema.type === 'integer') delete jsonSchema.pattern;
      const [shown, ...others] = jsonSchema.anyOf?.filter((one) => Object.keys(one).length > 0) ?? [];
      if (shown === undefined || others.length > 0) return;
      delete jsonSchema.anyOf;
      Object.assign(jsonSchema, shown);
    },
  });
}

function schemaOf(schema: z.ZodType, options: z.core.ToJSONSchemaParams): z.core.JSONSchema.BaseSchema {
  const rendered: z.core.JSONSchema.BaseSchema = z.toJSONSchema(schema, options);
  delete rendered.$schema;
  return rendered;
}
