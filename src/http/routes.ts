import { NotFoundError, NotVerifiedError } from '../base/errors.js';
import { parseInput } from '../base/fields.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { Payout, PayoutInput } from '../ledger/payout.js';
import type { PayoutProducer } from '../control/payout-producer.js';
import type { ListOptions } from '../ledger/payout-queries.js';
import { type Reply, toProblemReply } from './problem.js';
import { cancelBody, eventsQuery, listQuery, MAX_PAYOUTS, payoutsBody, type REPLY_SCHEMAS } from './schemas.js';
import type { Right, TokenEntry } from './tokens.js';
import { z } from 'zod';

/** What the door serves: each route passes a request to the producer of the token's account. */

export interface DoorAccount {
  readonly producer: PayoutProducer;
  readonly connection: LedgerConnection;
  readonly nextEvents: () => AbortSignal;
  readonly requiresSignature: boolean;
}

export interface Call {
  readonly account: DoorAccount;
  readonly token: TokenEntry;
  readonly payoutId: string;
  readonly query: unknown;
  readonly body: unknown;
  readonly lastEventId: string | undefined;
  readonly stream: (after: string | undefined) => Promise<undefined>;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly right: Right;
  readonly query?: z.ZodObject;
  readonly handle: (call: Call) => Promise<Reply | undefined>;
  /** For the OpenAPI document only. */
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly replies?: Readonly<Record<number, string>>;
  readonly schema: keyof typeof REPLY_SCHEMAS;
}

export const ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/payouts',
    right: 'enqueue',
    handle: enqueue,
    summary: 'Enqueue one payout, or up to 1,000. The same payoutId with the same data is the same payout',
    body: payoutsBody,
    replies: { 201: 'At least one was created', 200: 'All were there with the same data' },
    schema: 'Accepted',
  },
  {
    method: 'GET',
    path: '/v1/payouts',
    right: 'read',
    query: listQuery,
    handle: list,
    summary: 'List the payouts in a state, of a batch, or with an id, by page; `next` is the cursor of the next one',
    schema: 'Page',
  },
  {
    method: 'GET',
    path: '/v1/payouts/{payoutId}',
    right: 'read',
    handle: get,
    summary: 'Get a payout with its history',
    schema: 'Payout',
  },
  {
    method: 'POST',
    path: '/v1/payouts/{payoutId}/cancel',
    right: 'cancel',
    handle: cancel,
    summary: 'Cancel a payout that is queued or held, or give up a rejected one',
    body: cancelBody,
    schema: 'Payout',
  },
  {
    method: 'GET',
    path: '/v1/stats',
    right: 'read',
    handle: stats,
    summary: 'Count payouts by state, and say whether the account is paused',
    schema: 'Stats',
  },
  {
    method: 'GET',
    path: '/v1/events',
    right: 'read',
    query: eventsQuery,
    handle: events,
    summary: 'Follow the events of the account: in order, each at least once. `Last-Event-ID` counts before `after`',
    schema: 'Event',
  },
];

async function enqueue({ account, body }: Call): Promise<Reply> {
  if (account.requiresSignature) requireSignatures(body);
  if (!Array.isArray(body)) {
    const accepted = await account.producer.enqueue(body as PayoutInput);
    return { status: accepted.created ? 201 : 200, body: accepted };
  }
  parseInput(payoutList, { payouts: body });
  const result = await account.producer.enqueueMany(body as PayoutInput[]);
  const { created, existing, conflicts } = result;
  if (conflicts === 0) return { status: created > 0 ? 201 : 200, body: result };
  const detail = `${conflicts} of ${body.length} payouts exist with other data; the other ${created + existing} are accepted. See results.`;
  return toProblemReply('CONFLICT', detail, result);
}

const TOO_MANY = `must be at most ${MAX_PAYOUTS} in one request`;
const payoutList = z.object({
  payouts: z.array(z.unknown()).min(1, 'must not be empty').max(MAX_PAYOUTS, TOO_MANY),
});

/** Whether a signature counts only the worker decides. */
function requireSignatures(body: unknown): void {
  const payouts = [body].flat() as ({ readonly signature?: unknown } | null | undefined)[];
  const which = payouts.findIndex((payout) => payout?.signature === undefined);
  if (which === -1) return;
  throw new NotVerifiedError(
    `${Array.isArray(body) ? `[${which}]: ` : ''}The payout is not signed. Workers of this account send only signed ones, and the door has no key: sign it before it is enqueued (docs/http.md)`,
  );
}

async function get({ account, payoutId }: Call): Promise<Reply> {
  const payout = await account.producer.get(payoutId);
  if (payout === undefined) throw new NotFoundError(`Payout ${payoutId} not found`);
  return { status: 200, body: toJson(payout) };
}

async function list({ account, query }: Call): Promise<Reply> {
  const { payoutId, ...options } = query as ListOptions & { payoutId?: string };
  if (payoutId !== undefined) {
    const payout = await account.producer.get(payoutId);
    return { status: 200, body: { payouts: payout === undefined ? [] : [toJson(payout)], next: null } };
  }
  const { payouts, next = null } = await account.producer.list(options);
  return { status: 200, body: { payouts: payouts.map(toJson), next } };
}

async function cancel({ account, token, payoutId, body = {} }: Call): Promise<Reply> {
  const { reason } = parseInput(cancelBody, body);
  const options = { by: token.name, ...(reason !== undefined && { reason }) };
  return { status: 200, body: toJson(await account.producer.cancel(payoutId, options)) };
}

async function stats({ account }: Call): Promise<Reply> {
  return { status: 200, body: await account.producer.stats() };
}

async function events({ query, lastEventId, stream }: Call): Promise<undefined> {
  // A browser's EventSource repeats its URL, and says in the header how far it came.
  const { after } = parseInput(eventsQuery, lastEventId === undefined ? query : { after: lastEventId });
  return stream(after);
}

/** Signatures of payouts, acts and approvals are for workers; who signed remains. */
function toJson({ signed, ...payout }: Payout): object {
  const shown = { ...payout, act: undefined, approvals: undefined, decisions: undefined };
  return signed === undefined ? shown : { ...shown, signedBy: signed.key, expiresAt: signed.expiresAt };
}
