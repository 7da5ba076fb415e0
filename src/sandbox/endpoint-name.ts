/** What a call is about, in either dialect: calls are counted, and faults planned, by it. */
export const ENDPOINT_NAMES = ['withdraw', 'transactionstatus', 'getpaymentwallet', 'currencies', 'balance'] as const;

/** The first generation's name of an endpoint; the second's counts as the same. */
export type EndpointName = (typeof ENDPOINT_NAMES)[number];
