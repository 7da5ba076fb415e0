import type { PayoutInput } from '../../../src/ledger/payout.js';
import type { Target } from '../support/attack.js';
import { approve, APPROVALS } from './approvals.js';

/** What someone sends to the dashboard's one write, who has its password or makes a browser send it. */
export interface PostedAttack {
  readonly name: string;
  readonly input?: Partial<PayoutInput>;
  /** What the dashboard responds: one of these. */
  readonly status: readonly number[];
  request(target: Target): Promise<Posted>;
}

/** A request without the password, which the test adds. */
export interface Posted {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const JSON_TYPE = { 'content-type': 'application/json' };
/** It is ann's word once more: the dashboard keeps it, and nobody counts it twice. */
const SAME_PERSON = 'an approval of a second key of the same person';

/** What an attacker puts into Redis, brought to the dashboard instead. */
const BROUGHT: readonly PostedAttack[] = APPROVALS.flatMap(({ name, input, make, held }) =>
  // Where the payout itself is held, the approval is sound.
  make === undefined || held !== undefined
    ? []
    : [
        {
          name,
          ...(input && { input }),
          status: name === SAME_PERSON ? [200] : [400, 403, 404],
          request: async (target: Target) => ({ headers: JSON_TYPE, body: JSON.stringify(await make(target)) }),
        },
      ],
);

/** Of an approval that would count: only the way in which it comes is wrong. */
function withBobs(name: string, status: number, change: (body: string) => Posted): PostedAttack {
  return {
    name,
    status: [status],
    request: async (target) => ({ headers: JSON_TYPE, ...change(JSON.stringify(await approve(target, 'bob'))) }),
  };
}

export const POSTED: readonly PostedAttack[] = [
  ...BROUGHT,
  { name: 'no body', status: [400], request: async () => Promise.resolve({ headers: JSON_TYPE }) },
  {
    name: 'a body that is no JSON',
    status: [400],
    request: async () => Promise.resolve({ headers: JSON_TYPE, body: '{' }),
  },
  withBobs("bob's approval, without the password", 401, (body) => ({
    body,
    headers: { ...JSON_TYPE, authorization: '' },
  })),
  withBobs("bob's approval, as text, which a form of another site can send", 415, (body) => ({
    ...{ body, headers: { 'content-type': 'text/plain' } },
  })),
  withBobs("bob's approval, as a form", 415, (body) => ({
    ...{ body: `x=${encodeURIComponent(body)}`, headers: { 'content-type': 'application/x-www-form-urlencoded' } },
  })),
  withBobs("bob's approval, from a page of another site (Origin)", 403, (body) => ({
    ...{ body, headers: { ...JSON_TYPE, origin: 'https://shop.example' } },
  })),
  withBobs("bob's approval, from a page of another site (Sec-Fetch-Site)", 403, (body) => ({
    ...{ body, headers: { ...JSON_TYPE, 'sec-fetch-site': 'cross-site' } },
  })),
  withBobs("bob's approval in a megabyte", 413, (body) => ({
    body: body.replace('{', `{"text":${JSON.stringify('x'.repeat(1_000_000))},`),
  })),
  withBobs("bob's approval with an amount beside it", 400, (body) => ({ body: body.replace('{', '{"amount":"1",') })),
  withBobs("bob's approval by PUT", 405, (body) => ({ body, method: 'PUT' })),
  withBobs("bob's approval at the path of the payout", 405, (body) => ({ body, path: '/payouts/P' })),
];
