// Restate: a virtual object runs one call for each key at a time (https://docs.restate.dev/foundations/services). Restate
// has no rate limit, so the object of the account pays in a durable step and then sleeps for a second, durably. With care:
// a first step keeps which attempt began, and another one, which would pay a second time, fails instead; an attempt that
// Restate has given up (`attemptCompletedSignal`) no longer pays.
import { randomUUID } from 'node:crypto';
import * as restate from '@restatedev/restate-sdk';
import * as clients from '@restatedev/restate-sdk-clients';
import { INTERVAL_MS, notKnown, restAfter, startDeadline } from './care.mjs';

const OBJECT = { name: 'account' };
const KEY = 'merchant';

export async function openClient({ url, adminUrl }) {
  const account = clients.connect({ url }).objectSendClient(OBJECT, KEY);
  return {
    async enqueue(payouts) {
      for (const payout of payouts)
        await account.pay(payout, clients.rpc.sendOpts({ idempotencyKey: payout.payoutId }));
    },
    async look(payoutIds) {
      const rows = await query(adminUrl, 'SELECT idempotency_key, status, completion_result FROM sys_invocation');
      const states = new Map(rows.map((row) => [row.idempotency_key, stateOf(row)]));
      return new Map(payoutIds.map((payoutId) => [payoutId, states.get(payoutId) ?? 'missing']));
    },
    /** What anyone who reaches the server can do: what it stores is not open to others, its ports are. */
    async forge({ payoutId, amount, paymentId }, addressTo) {
      await account.pay({ payoutId, amount, paymentId, addressTo });
    },
    close: async () => undefined,
  };
}

function stateOf({ status, completion_result: result }) {
  if (status === 'completed') return result === 'success' ? 'done' : 'asks';
  return 'waits';
}

async function query(adminUrl, text) {
  const headers = { 'content-type': 'application/json', accept: 'application/json' };
  const response = await fetch(`${adminUrl}/query`, { method: 'POST', headers, body: JSON.stringify({ query: text }) });
  const { rows } = await response.json();
  return rows;
}

export async function work({ careful, port }, withdraw) {
  const handlers = { pay: async (context, payout) => (careful ? payWithCare : pay)(context, withdraw, payout) };
  await restate.serve({ services: [restate.object({ ...OBJECT, handlers })], port });
  return async () => undefined;
}

async function pay(context, withdraw, payout) {
  await inStep(
    context,
    async () => withdraw(payout),
    () => INTERVAL_MS,
  );
}

async function payWithCare(context, withdraw, payout) {
  const self = randomUUID();
  const mayWrite = startDeadline(context.request().attemptCompletedSignal);
  const begunBy = await context.run('begin', () => self);
  const payOnce = async () => {
    if (begunBy !== self) throw notKnown();
    return withdraw(payout, mayWrite);
  };
  await inStep(context, payOnce, restAfter);
}

/** Errors are terminal: otherwise it would be tried again, and whether it is paid is not known. Then it rests. */
async function inStep(context, work, restOf) {
  const result = await context.run('withdraw', async () =>
    work().catch(({ message, isKnown = false }) => ({ failure: { message, isKnown } })),
  );
  await context.sleep(restOf(result.failure));
  if (result.failure !== undefined) throw new restate.TerminalError(result.failure.message);
}
