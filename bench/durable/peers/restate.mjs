// Restate: a virtual object runs one call for each key at a time (https://docs.restate.dev/foundations/services). Restate
// has no rate limit, so the object of the account pays in a durable step and then sleeps for a second, durably. With care:
// a first step keeps which process began, and another one, which would pay a second time, fails instead.
import { randomUUID } from 'node:crypto';
import * as restate from '@restatedev/restate-sdk';
import * as clients from '@restatedev/restate-sdk-clients';

// Its SDK needs Node 22, and development works on 20 too.
Promise.withResolvers ??= function () {
  const parts = {};
  parts.promise = new this((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

const OBJECT = { name: 'account' };
const KEY = 'merchant';
const INTERVAL_MS = 1_000;

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
  const self = randomUUID();
  const pay = async (context, payout) => {
    const begunBy = careful ? await context.run('begin', () => self) : self;
    let failure;
    try {
      await context.run('withdraw', async () => payOnce(withdraw, payout, begunBy === self));
    } catch (error) {
      if (!(error instanceof restate.TerminalError)) throw error;
      failure = error;
    }
    await context.sleep(INTERVAL_MS);
    if (failure !== undefined) throw failure;
  };
  const object = restate.object({ ...OBJECT, handlers: { pay } });
  await restate.serve({ services: [object], port });
  return async () => undefined;
}

/** Its errors are terminal: otherwise it would be tried again, and whether it is paid is not known. */
async function payOnce(withdraw, payout, isFirst) {
  if (!isFirst) throw new restate.TerminalError('its process ended: whether it is paid is not known');
  try {
    return await withdraw(payout);
  } catch (error) {
    throw new restate.TerminalError(error.message);
  }
}
