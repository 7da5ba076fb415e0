/** The five documented endpoints, each with its fields in the order in which they are signed (API document, part 5). */
export const ENDPOINT_FIELDS = {
  withdraw: { required: ['payment_id', 'platform_id', 'amount', 'address_to'], optional: ['symbol'] },
  transactionstatus: { required: ['platform_id', 'txhash'], optional: [] },
  getpaymentwallet: { required: ['payment_id', 'platform_id', 'order_id'], optional: [] },
  currencies: { required: ['platform_id'], optional: [] },
  balance: { required: ['platform_id'], optional: [] },
} as const satisfies Record<string, { required: readonly string[]; optional: readonly string[] }>;

/** An endpoint of the gateway, without its slash. */
export type Endpoint = keyof typeof ENDPOINT_FIELDS;

export const ENDPOINTS = Object.keys(ENDPOINT_FIELDS) as [Endpoint, ...Endpoint[]];

/** The endpoint behind a request path, or nothing where the document names none. */
export function endpointOf(path: string): Endpoint | undefined {
  return ENDPOINTS.find((endpoint) => path === `/${endpoint}`);
}

/** What is wrong with the fields that a call brought, as a message; nothing when names and order are as documented. */
export function findFieldProblem(endpoint: Endpoint, names: readonly string[]): string | undefined {
  const { required, optional }: { required: readonly string[]; optional: readonly string[] } =
    ENDPOINT_FIELDS[endpoint];
  const known = [...required, ...optional];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) return `unknown field ${unknown}`;
  const missing = required.find((name) => !names.includes(name));
  if (missing !== undefined) return `${missing} is missing`;
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) return `${repeated} was sent twice`;
  const expected = known.filter((name) => names.includes(name)).join(', ');
  return names.join(', ') === expected ? undefined : `wrong field order: expected ${expected}`;
}
