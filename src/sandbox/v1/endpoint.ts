import { z } from 'zod';
import { ENDPOINTS, toPackageName } from '../../gateway/v1/endpoints.js';
import type { EndpointName } from '../endpoint-name.js';

/**
 * @returns the problem of names or order, if any
 * @see docs/gateway-api-v1.md#authentication
 */
export function findFieldProblem(endpoint: EndpointName, names: readonly string[]): string | undefined {
  const known: readonly string[] = ENDPOINTS[endpoint].signedFields;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) return `unknown field ${unknown}`;
  const missing = known.find((name) => !names.includes(name) && !isOptional(endpoint, name));
  if (missing !== undefined) return `${missing} is missing`;
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) return `${repeated} was sent twice`;
  const expected = known.filter((name) => names.includes(name)).join(', ');
  return names.join(', ') === expected ? undefined : `wrong field order: expected ${expected}`;
}

function isOptional(endpoint: EndpointName, name: string): boolean {
  return schemaOf(endpoint, name) instanceof z.ZodExactOptional;
}

/** A field's value in the type of its schema: the API's integers become numbers. */
export function toFieldValue(endpoint: EndpointName, name: string, text: string): unknown {
  return schemaOf(endpoint, name) instanceof z.ZodNumber && /^\d{1,15}$/.test(text) ? Number(text) : text;
}

function schemaOf(endpoint: EndpointName, name: string): unknown {
  const shape: Readonly<Record<string, unknown>> = ENDPOINTS[endpoint].request.shape;
  return shape[toPackageName(name)];
}
