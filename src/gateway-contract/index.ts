import assert from 'node:assert/strict';
import {
  type EventMessage,
  type Gateway,
  GatewayRejectedError,
  GatewayUnavailableError,
  type PaymentStatus,
  type WithdrawConnection,
  type WithdrawOutcome,
  type WithdrawRequest,
} from '../gateway/gateway.js';
import { httpResponse, type RawServer, type RawServerBehaviour, startRawServer } from './raw-server.js';

/**
 * What the sender depends on in a gateway, as a suite for any test runner: each rule runs the gateway against a server of
 * raw bytes on this machine.
 */

/** A response of the gateway: the body of HTTP 200, or another status with its body. */
export type SubjectResponse = string | { readonly status: number; readonly body: string };

/** A gateway, as far as the contract must know it: how to open it, and how its server responds. */
export interface GatewaySubject {
  /** Must give up a response to a withdrawal and to a query after `withinMs`. */
  readonly open: (baseUrl: string, withinMs: number) => Gateway;
  readonly request: WithdrawRequest;
  /** The name of the payment in `accepted`, by which it is polled. */
  readonly acceptedId: string;
  readonly accepted: SubjectResponse;
  /** Neither an acceptance nor a refusal, although it looks like one: without the payment's name, or a failure with it. */
  readonly contradictory: readonly SubjectResponse[];
  readonly rejected: (message: string) => SubjectResponse;
  readonly status: Readonly<Record<PaymentStatus['kind'], SubjectResponse>>;
  /** The answer to a look-up by order id. Absent if the gateway has none. */
  readonly found?: SubjectResponse;
  /** A message of the gateway about the payment `acceptedId`, as its server would receive it. Absent if it sends none. */
  readonly event?: EventMessage;
  /** In no outcome and no error. */
  readonly secretKey: string;
  /** What no outcome and no error may contain, of a request as received: its signature or login. */
  readonly secretsOf: (request: string) => readonly string[];
}

/** One rule of the port that the sender depends on. */
export interface ContractRule {
  readonly name: string;
  /** @throws AssertionError if the gateway breaks the rule */
  readonly check: (subject: GatewaySubject) => Promise<void>;
}

const WITHIN_MS = 400;

const ORDER_ID = '5f3a9c1e7b2d4860a1b2c3d4e5f60718';

/** The rules, in the order in which {@link testGateway} tests them. */
export const GATEWAY_CONTRACT: readonly ContractRule[] = [
  {
    name: 'an acceptance names the payment',
    check: async (subject) => {
      const { outcome } = await attempt(subject, responding(toBytes(subject.accepted)));
      assert.equal(outcome.kind, 'accepted');
      assert.equal(outcome.gatewayId, subject.acceptedId);
    },
  },
  {
    name: 'a refusal is rejected, with its message',
    check: async (subject) => {
      const { outcome } = await attempt(subject, responding(toBytes(subject.rejected('no such coin'))));
      assert.equal(outcome.kind, 'rejected');
      assert.match(outcome.message, /no such coin/);
    },
  },
  {
    name: 'without permission no byte leaves, and the outcome is not sent',
    check: async (subject) => {
      const { outcome, server } = await attempt(subject, {}, async (connection) => send(connection, subject, false));
      assert.equal(outcome.kind, 'not_sent');
      assert.equal(server.receivedBytes, 0);
    },
  },
  {
    name: 'permission is requested once, before the first byte',
    check: async (subject) => {
      const bytesWhenAsked: number[] = [];
      const { server } = await attempt(subject, responding(toBytes(subject.accepted)), async (connection, opened) =>
        connection.withdraw(subject.request, {
          mayWrite: () => {
            bytesWhenAsked.push(opened.receivedBytes);
            return true;
          },
        }),
      );
      assert.deepEqual(bytesWhenAsked, [0]);
      assert.equal(server.requests.length, 1);
    },
  },
  {
    name: 'a connection that was closed is not usable, and nothing is sent',
    check: async (subject) => {
      const { outcome, server } = await attempt(subject, {}, async (connection) => {
        connection.close();
        assert.equal(connection.usable, false);
        return send(connection, subject);
      });
      assert.equal(outcome.kind, 'not_sent');
      assert.equal(server.receivedBytes, 0);
    },
  },
  {
    name: 'a connection sends once',
    check: async (subject) => {
      const { outcome, server } = await attempt(subject, responding(toBytes(subject.accepted)), async (connection) => {
        await send(connection, subject);
        return send(connection, subject);
      });
      assert.equal(outcome.kind, 'not_sent');
      assert.equal(server.requests.length, 1);
    },
  },
  {
    name: 'an unclear response is unknown',
    check: async (subject) => {
      const cut = toBytes(subject.accepted).subarray(0, -5);
      const unclear: readonly RawServerBehaviour[] = [
        responding(httpResponse(502, '<html>Bad gateway</html>')),
        responding(httpResponse(200, '')),
        responding(httpResponse(200, '{}')),
        ...subject.contradictory.map((body) => responding(toBytes(body))),
        { onRequest: ({ stream }) => void stream.end(cut) },
        { onRequest: ({ stream }) => void stream.end() },
        { onRequest: ({ reset }) => void setImmediate(reset) },
        {},
      ];
      for (const behaviour of unclear) assert.equal((await attempt(subject, behaviour)).outcome.kind, 'unknown');
    },
  },
  {
    name: 'a reset ends a withdrawal under way as unknown, for its reason',
    check: async (subject) => {
      let reset = (): void => undefined;
      const { outcome } = await attempt(
        subject,
        {
          onRequest: () => {
            reset();
          },
        },
        async (connection) => {
          reset = () => {
            connection.reset('the lease was lost');
          };
          return send(connection, subject);
        },
      );
      assert.equal(outcome.kind, 'unknown');
      assert.match(outcome.reason, /the lease was lost/);
    },
  },
  {
    name: 'a probe takes a refusal for a response, and silence for none',
    check: async (subject) => {
      await ask(subject, responding(toBytes(subject.rejected('no'))), async (gateway) =>
        gateway.probe(new AbortController().signal),
      );
      await ask(subject, {}, async (gateway) =>
        assert.rejects(gateway.probe(new AbortController().signal), GatewayUnavailableError),
      );
      await ask(subject, {}, async (gateway) =>
        assert.rejects(gateway.probe(AbortSignal.abort()), GatewayUnavailableError),
      );
    },
  },
  {
    name: 'a status is pending, paid or failed as the gateway says',
    check: async (subject) => {
      for (const kind of ['pending', 'paid', 'failed'] as const) {
        await ask(subject, responding(toBytes(subject.status[kind])), async (gateway) => {
          assert.equal((await gateway.getStatus(subject.acceptedId)).kind, kind);
        });
      }
    },
  },
  {
    name: 'a status tells the transaction that the acceptance told',
    check: async (subject) => {
      const { outcome } = await attempt(subject, responding(toBytes(subject.accepted)));
      assert.equal(outcome.kind, 'accepted');
      if (outcome.txhash === undefined) return;
      for (const response of Object.values(subject.status)) {
        await ask(subject, responding(toBytes(response)), async (gateway) => {
          assert.equal((await gateway.getStatus(subject.acceptedId)).txhash, outcome.txhash);
        });
      }
    },
  },
  {
    name: 'a status that the gateway refuses or does not give is an error, never a status',
    check: async (subject) => {
      await ask(subject, responding(toBytes(subject.rejected('not found'))), async (gateway) =>
        assert.rejects(gateway.getStatus(subject.acceptedId), GatewayRejectedError),
      );
      await ask(subject, responding(httpResponse(502, '<html>')), async (gateway) =>
        assert.rejects(gateway.getStatus(subject.acceptedId), GatewayUnavailableError),
      );
    },
  },
  {
    name: 'an order id is sent with a withdrawal, and finds its payment; a refusal of the look-up finds none',
    check: async (subject) => {
      const { outcome, server } = await attempt(subject, responding(toBytes(subject.accepted)), async (connection) =>
        send(connection, subject, true, ORDER_ID),
      );
      assert.equal(outcome.kind, 'accepted');
      const isSent = server.requests[0]?.includes(ORDER_ID);
      await ask(subject, responding(toBytes(subject.found ?? '')), async (gateway) => {
        assert.equal(gateway.findPayment !== undefined, subject.found !== undefined);
        assert.equal(isSent, subject.found !== undefined);
        const found = await gateway.findPayment?.(ORDER_ID);
        if (subject.found !== undefined) assert.equal(found?.gatewayId, subject.acceptedId);
      });
      if (subject.found === undefined) return;
      await ask(subject, responding(toBytes(subject.rejected('not found'))), async (gateway) =>
        assert.rejects(async () => gateway.findPayment?.(ORDER_ID), GatewayRejectedError),
      );
    },
  },
  {
    name: 'a message of the gateway counts for its bytes as they came, and only signed',
    check: async (subject) => {
      await ask(subject, {}, async (gateway) => {
        const { event } = subject;
        assert.equal(gateway.readEvent !== undefined, event !== undefined);
        if (event === undefined) return;
        assert.deepEqual(gateway.readEvent?.(event), { kind: 'payment', gatewayId: subject.acceptedId });
        const spaced = Buffer.concat([event.body, Buffer.from(' ')]);
        const forged: readonly EventMessage[] = [
          { ...event, headers: {} },
          { ...event, body: spaced },
          { ...event, body: new Uint8Array() },
        ];
        for (const each of forged) assert.deepEqual(gateway.readEvent(each), { kind: 'forged' });
        return Promise.resolve();
      });
    },
  },
  {
    name: 'no outcome and no error contains a secret, even if the gateway repeats it',
    check: async (subject) => {
      const secrets: string[] = [];
      const echo: RawServerBehaviour = {
        onRequest: ({ stream }, request) => {
          const found = subject.secretsOf(request);
          secrets.push(...found);
          stream.write(toBytes(subject.rejected(found.join(' '))));
        },
      };
      const { outcome } = await attempt(subject, echo);
      let error: unknown;
      await ask(subject, echo, async (gateway) => {
        error = await gateway.getStatus(subject.acceptedId).catch((thrown: unknown) => thrown);
      });
      const shown = JSON.stringify([outcome, error, String(error), Object.getOwnPropertyDescriptors(error)]);
      assert.equal(outcome.kind, 'rejected');
      assert.ok(error instanceof Error);
      assert.ok(secrets.length > 0 && !secrets.includes(''));
      for (const secret of [...secrets, subject.secretKey]) assert.ok(!shown.includes(secret), 'a secret is shown');
    },
  },
];

/**
 * Registers a test for each rule.
 * @example
 * testGateway(test, { open: (baseUrl, withinMs) => createAcmeGateway({ baseUrl, timeoutMs: withinMs }), … });
 * @param test - of node:test, jest, vitest and the like
 */
export function testGateway(test: (name: string, run: () => Promise<void>) => unknown, subject: GatewaySubject): void {
  for (const { name, check } of GATEWAY_CONTRACT) test(name, async () => check(subject));
}

type Use = (connection: WithdrawConnection, server: RawServer) => Promise<WithdrawOutcome>;

/** Every withdrawal goes through here: "not sent" and a byte at the server exclude each other. */
async function attempt(
  subject: GatewaySubject,
  behaviour: RawServerBehaviour,
  use: Use = async (connection) => send(connection, subject),
): Promise<{ readonly outcome: WithdrawOutcome; readonly server: RawServer }> {
  const server = await startRawServer(behaviour);
  const gateway = subject.open(server.baseUrl, WITHIN_MS);
  try {
    const connection = await gateway.openConnection(new AbortController().signal);
    assert.equal(connection.usable, true);
    const outcome = await use(connection, server);
    await server.allClosed();
    if (server.requests.length === 0) assert.equal(outcome.kind, 'not_sent');
    assert.equal(connection.usable, false);
    return { outcome, server };
  } finally {
    gateway.close();
    await server.stop();
  }
}

async function ask(
  subject: GatewaySubject,
  behaviour: RawServerBehaviour,
  use: (gateway: Gateway) => Promise<void>,
): Promise<void> {
  const server = await startRawServer(behaviour);
  const gateway = subject.open(server.baseUrl, WITHIN_MS);
  try {
    await use(gateway);
  } finally {
    gateway.close();
    await server.stop();
  }
}

async function send(
  connection: WithdrawConnection,
  { request }: GatewaySubject,
  may = true,
  orderId?: string,
): Promise<WithdrawOutcome> {
  return connection.withdraw(request, { mayWrite: () => may, ...(orderId !== undefined && { orderId }) });
}

function toBytes(response: SubjectResponse): Buffer {
  return typeof response === 'string' ? httpResponse(200, response) : httpResponse(response.status, response.body);
}

function responding(response: Buffer): RawServerBehaviour {
  return { onRequest: ({ stream }) => void stream.write(response) };
}
