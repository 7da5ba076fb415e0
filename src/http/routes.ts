import type { ServerResponse } from 'node:http';
import { NotFoundError, NotVerifiedError } from '../base/errors.js';
import { parseInput } from '../base/fields.js';
import type { LedgerConnection } from '../ledger/ledger-connection.js';
import type { Payout, PayoutInput } from '../ledger/payout.js';
import type { PayoutProducer } from '../control/payout-producer.js';
import type { ListOptions } from '../ledger/reads/payout-queries.js';
import { type EventBell, streamEvents } from './event-stream.js';
import { type Reply, toProblemReply } from './problem.js';
import { cancelBody, eventsQuery, listQuery, MAX_PAYOUTS, noQuery } from './schemas.js';
import type { Right, TokenEntry } from './tokens.js';
import { z } from 'zod';

/** What the door serves: each route passes a request to the producer of the token's account. */

/** An account behind the door. */
export interface DoorAccount {
  readonly producer: PayoutProducer;
  readonly connection: LedgerConnection;
  readonly bell: EventBell;
  /** Workers with a keyring send nothing unsigned, so the door takes nothing unsigned. */
  readonly requiresSignature: boolean;
}

/** An authorised request. */
export interface Call {
  readonly account: DoorAccount;
  readonly token: TokenEntry;
  readonly payoutId: string;
  readonly query: unknown;
  /** Parsed JSON; undefined without a body. */
  readonly body: unknown;
  readonly lastEventId: string | undefined;
  /** Runs a stream in place of a reply. */
  readonly stream: (run: (response: ServerResponse, signal: AbortSignal) => Promise<void>) => Promise<undefined>;
  readonly isAllowed: () => boolean;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  /** As in the OpenAPI document; the label of the metrics. */
  readonly path: string;
  readonly right: Right;
  readonly query: z.ZodObject;
  readonly handle: (call: Call) => Promise<Reply | undefined>;
}

export const ROUTES: readonly Route[] = [
  { method: 'POST', path: '/v1/payouts', right: 'enqueue', query: noQuery, handle: enqueue },
  { method: 'GET', path: '/v1/payouts', right: 'read', query: listQuery, handle: list },
  { method: 'GET', path: '/v1/payouts/{payoutId}', right: 'read', query: noQuery, handle: get },
  { method: 'POST', path: '/v1/payouts/{payoutId}/cancel', right: 'cancel', query: noQuery, handle: cancel },
  {
    method: 'GET',
    path: '/v1/stats',
    right: 'read',
    query: noQuery,
    handle: async ({ account }) => ({ status: 200, body: await account.producer.stats() }),
  },
  { method: 'GET', path: '/v1/events', right: 'read', query: eventsQuery, handle: events },
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

const payoutList = z.object({
  payouts: z
    .array(z.unknown())
    .min(1, 'must not be empty')
    .max(MAX_PAYOUTS, `must be at most ${MAX_PAYOUTS} in one request`),
});

/** Whether a signature counts only the worker decides. */
function requireSignatures(body: unknown): void {
  const isUnsigned = (payout: unknown): boolean =>
    (payout as { readonly signature?: unknown } | null | undefined)?.signature === undefined;
  const which = Array.isArray(body) ? body.findIndex(isUnsigned) : isUnsigned(body) ? -2 : -1;
  if (which === -1) return;
  throw new NotVerifiedError(
    `${which === -2 ? '' : `[${which}]: `}The payout is not signed. Workers of this account send only what a producer's key signed, and the door has no key: sign it before it is enqueued (docs/http.md)`,
  );
}

async function get({ account, payoutId }: Call): Promise<Reply> {
  const payout = await account.producer.get(payoutId);
  if (payout === undefined) throw new NotFoundError(`Payout ${payoutId} not found`);
  return { status: 200, body: toJson(payout) };
}

async function list({ account, query }: Call): Promise<Reply> {
  const { limit, ...which } = query as z.output<typeof listQuery>;
  const options: ListOptions = { ...which, ...(limit !== undefined && { limit: Number(limit) }) };
  const { payouts, next = null } = await account.producer.list(options);
  return { status: 200, body: { payouts: payouts.map(toJson), next } };
}

async function cancel({ account, token, payoutId, body = {} }: Call): Promise<Reply> {
  const { reason } = parseInput(cancelBody, body);
  const options = { by: token.name, ...(reason !== undefined && { reason }) };
  return { status: 200, body: toJson(await account.producer.cancel(payoutId, options)) };
}

async function events({ account, query, lastEventId, stream, isAllowed }: Call): Promise<undefined> {
  // A browser's EventSource repeats its URL, and says in the header how far it came.
  const { after } = parseInput(eventsQuery, lastEventId === undefined ? query : { after: lastEventId });
  return stream(async (response, signal) => {
    await streamEvents({ ...account, response, after, signal, isAllowed });
  });
}

/** Signatures of payouts, acts and approvals are for workers; who signed remains. */
function toJson({ signed, ...payout }: Payout): object {
  const shown = { ...payout, act: undefined, approvals: undefined, decisions: undefined };
  return signed === undefined ? shown : { ...shown, signedBy: signed.key, expiresAt: signed.expiresAt };
}
