import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { Gateway, WithdrawConnection } from '../../src/gateway/gateway.js';
import { GATEWAY_CONTRACT, type GatewaySubject, testGateway } from '../../src/gateway-contract/index.js';
import { clientOf, SECRET_KEY, v2Of } from './support/test-client.js';

const EVENT_BODY = Buffer.from('{"transactionId":"abc","approve":1}');
const EVENT = `4242;${EVENT_BODY.toString()};${SECRET_KEY}`;

const V1: GatewaySubject = {
  open: (baseUrl, withinMs) => clientOf({ baseUrl }, { timeoutMs: withinMs, withdrawTimeoutMs: withinMs }),
  request: { paymentId: 10, amount: '1.5', addressTo: 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh:123456789' },
  acceptedId: 'abc',
  accepted: '{"result":1,"txhash":"abc","payment_id":10,"amount":1.5}',
  contradictory: [
    '{"result":1,"payment_id":10,"amount":1.5}',
    '{"result":1,"txhash":""}',
    '{"result":1,"txhash":null}',
    '{"result":0,"message":"no such coin","txhash":"abc"}',
    '{"result":true,"txhash":"abc"}',
  ],
  rejected: (message) => JSON.stringify({ result: 0, message }),
  status: {
    pending: '{"result":1,"txhash":"abc","approve":0}',
    paid: '{"result":1,"txhash":"abc","approve":1}',
    failed: '{"result":1,"txhash":"abc","approve":2}',
  },
  secretKey: SECRET_KEY,
  secretsOf: (request) => [/hash=([0-9a-f]{64})$/.exec(request)?.[1] ?? ''],
};

const V2: GatewaySubject = {
  ...V1,
  open: (baseUrl, withinMs) => v2Of({ baseUrl }, { timeoutMs: withinMs, withdrawTimeoutMs: withinMs }),
  accepted: '{"result":1,"paymentId":10,"amount":"1.5","transactionId":"abc"}',
  contradictory: [
    '{"result":1,"paymentId":10,"amount":"1.5"}',
    '{"result":1,"txhash":"abc"}',
    ...['""', 'null', '0', '"0"', '-7', '1.5', '1e3', 'true', '[7]', '"a b"'].map(
      (id) => `{"result":1,"transactionId":${id}}`,
    ),
    '{"result":0,"message":"no such coin","transactionId":"abc"}',
    '{"result":0,"message":"no such coin","transactionId":0}',
    '{"result":0,"message":"no such coin","txhash":"abc"}',
    '{"result":true,"transactionId":"abc"}',
  ],
  status: {
    pending: '{"result":1,"approve":0,"txhash":""}',
    paid: '{"result":1,"approve":1,"txhash":"abc"}',
    failed: '{"result":1,"approve":2}',
  },
  found: '{"result":1,"approve":0,"transactionId":"abc"}',
  event: { headers: { 'x-signature': createHmac('sha256', SECRET_KEY).update(EVENT).digest('hex') }, body: EVENT_BODY },
  secretsOf: (request) => [/x-signature: ([0-9a-f]{64})\r\n/i.exec(request)?.[1] ?? ''],
};

const DIALECTS: readonly (readonly [string, GatewaySubject])[] = [
  ['the first generation of the API', V1],
  ['the second generation of the API', V2],
];

describe.each(DIALECTS)('%s', (_name, subject) => {
  testGateway(it, subject);
});

type Break = (gateway: Gateway) => Partial<Gateway>;
type Withdraw = WithdrawConnection['withdraw'];

/** Changes one method of each connection, and leaves the rest to the real one. */
function withdrawing(change: (withdraw: Withdraw, connection: WithdrawConnection) => Withdraw): Break {
  return (gateway) => ({
    openConnection: async (signal) => {
      const connection = await gateway.openConnection(signal);
      const withdraw = change(connection.withdraw.bind(connection), connection);
      return Object.create(connection, { withdraw: { value: withdraw } }) as WithdrawConnection;
    },
  });
}

const BROKEN: Readonly<Record<string, Break>> = {
  'an acceptance names the payment': withdrawing((withdraw) => async (request, options) => {
    const outcome = await withdraw(request, options);
    return outcome.kind === 'accepted' ? { ...outcome, gatewayId: 'another' } : outcome;
  }),
  'a refusal is rejected, with its message': withdrawing((withdraw) => async (request, options) => {
    const outcome = await withdraw(request, options);
    return outcome.kind === 'rejected' ? { ...outcome, message: 'refused' } : outcome;
  }),
  'without permission no byte leaves, and the outcome is not sent': withdrawing(
    (withdraw) => async (request) => withdraw(request, { mayWrite: () => true }),
  ),
  'permission is requested once, before the first byte': withdrawing((withdraw) => async (request, { mayWrite }) => {
    const outcome = await withdraw(request, { mayWrite: () => true });
    mayWrite();
    return outcome;
  }),
  'a connection that was closed is not usable, and nothing is sent': withdrawing((withdraw) => async (...args) => {
    const outcome = await withdraw(...args);
    return outcome.kind === 'not_sent' ? { kind: 'unknown', reason: outcome.reason, durationMs: 0 } : outcome;
  }),
  'a connection sends once': (gateway) => ({
    openConnection: async (signal) => {
      const connection = await gateway.openConnection(signal);
      let sends = 0;
      const withdraw: Withdraw = async (request, options) => {
        sends += 1;
        const used = sends === 1 ? connection : await gateway.openConnection(signal);
        return used.withdraw(request, options);
      };
      return Object.create(connection, { withdraw: { value: withdraw } }) as WithdrawConnection;
    },
  }),
  'an unclear response is unknown': withdrawing((withdraw) => async (...args) => {
    const outcome = await withdraw(...args);
    return outcome.kind === 'unknown' ? { ...outcome, kind: 'rejected', message: outcome.reason } : outcome;
  }),
  'a reset ends a withdrawal under way as unknown, for its reason': (gateway) => ({
    openConnection: async (signal) => {
      const connection = await gateway.openConnection(signal);
      return Object.create(connection, { reset: { value: () => undefined } }) as WithdrawConnection;
    },
  }),
  'a probe takes a refusal for a response, and silence for none': () => ({ probe: async () => Promise.resolve() }),
  'a status is pending, paid or failed as the gateway says': (gateway) => ({
    getStatus: async (id) => ({ ...(await gateway.getStatus(id)), kind: 'paid' }),
  }),
  'a status tells the transaction that the acceptance told': (gateway) => ({
    getStatus: async (id) => ({ kind: (await gateway.getStatus(id)).kind }),
  }),
  'a status that the gateway refuses or does not give is an error, never a status': (gateway) => ({
    getStatus: async (id) => gateway.getStatus(id).catch(() => ({ kind: 'failed' as const })),
  }),
  'an order id is sent with a withdrawal, and finds its payment; a refusal of the look-up finds none': (gateway) => ({
    ...withdrawing(
      (withdraw) =>
        async (request, { mayWrite }) =>
          withdraw(request, { mayWrite }),
    )(gateway),
    findPayment: async () => Promise.resolve({ kind: 'paid', gatewayId: 'abc' }),
  }),
  'a message of the gateway counts for its bytes as they came, and only signed': () => ({
    readEvent: () => ({ kind: 'payment', gatewayId: 'abc' }),
  }),
  'no outcome and no error contains a secret, even if the gateway repeats it': (gateway) => ({
    ...withdrawing(
      (withdraw) =>
        async (...args) =>
          withdraw(...args),
    )(gateway),
    getStatus: async (id) => Promise.reject(new Error(`refused: ${id}`, { cause: SECRET_KEY })),
  }),
};

it('each rule has a gateway that breaks it', () => {
  expect(Object.keys(BROKEN)).toEqual(GATEWAY_CONTRACT.map(({ name }) => name));
});

/** An acceptance of the second generation tells no transaction. */
const concerns = (subject: GatewaySubject, name: string) =>
  subject !== V2 || name !== 'a status tells the transaction that the acceptance told';

describe.each(DIALECTS)('%s: a gateway that breaks the rule is found', (_name, subject) => {
  it.each(GATEWAY_CONTRACT.filter(({ name }) => concerns(subject, name)))('$name', async ({ name, check }) => {
    const open: GatewaySubject['open'] = (baseUrl, withinMs) => {
      const gateway = subject.open(baseUrl, withinMs);
      return { ...gateway, ...BROKEN[name]?.(gateway) };
    };
    await expect(check({ ...subject, open })).rejects.toMatchObject({ name: 'AssertionError' });
  });
});
