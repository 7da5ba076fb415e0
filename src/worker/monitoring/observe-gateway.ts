import type { Clock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import {
  type Gateway,
  GatewayRejectedError,
  GatewayUnavailableError,
  type WithdrawConnection,
  type WithdrawOutcome,
} from '../../gateway/gateway.js';
import { hearHttpStatus } from '../../gateway/open-gateway.js';
import type { GatewayCall, WorkerObserver } from '../sender/worker-observer.js';

type EndCall = (outcome: Outcome, httpStatus?: number) => void;
type Outcome = NonNullable<GatewayCall['end']>['outcome'];

const WITHDRAW_OUTCOMES = {
  accepted: 'answered',
  rejected: 'rejected',
  unknown: 'unavailable',
  not_sent: 'not_sent',
} as const satisfies Record<WithdrawOutcome['kind'], Outcome>;

/** The same gateway; the observer receives each request at its begin and its end. */
export function observeGateway(
  gateway: Gateway,
  { gatewayCalled }: Pick<WorkerObserver, 'gatewayCalled'>,
  clock: Pick<Clock, 'now'>,
): Gateway {
  if (gatewayCalled === undefined) return gateway;

  const begin = (endpoint: GatewayCall['endpoint'], startedAt = clock.now()): EndCall => {
    const call: GatewayCall = { endpoint };
    gatewayCalled(call);
    return (outcome, httpStatus) => {
      call.end = { outcome, durationMs: clock.now() - startedAt, httpStatus };
      gatewayCalled(call);
    };
  };
  const observe = async <Result>(endpoint: GatewayCall['endpoint'], query: () => Promise<Result>): Promise<Result> => {
    const end = begin(endpoint);
    const heard: Parameters<typeof hearHttpStatus>[0] = {};
    try {
      const result = await hearHttpStatus(heard, query);
      end('answered', heard.httpStatus);
      return result;
    } catch (error) {
      end(failureOf(error), heard.httpStatus);
      throw error;
    }
  };

  const find = gateway.findPayment?.bind(gateway);
  return {
    capabilities: gateway.capabilities,
    comparePayment: (status, payment) => gateway.comparePayment(status, payment),
    classifyStop: (message, httpStatus) => gateway.classifyStop(message, httpStatus),
    ...(gateway.readEvent && { readEvent: gateway.readEvent.bind(gateway) }),
    close: () => {
      gateway.close();
    },
    async openConnection(signal) {
      const startedAt = clock.now();
      try {
        return observeConnection(await gateway.openConnection(signal), () => begin('withdraw'));
      } catch (error) {
        // A withdrawal that gets no connection gets no response.
        if (!signal.aborted) begin('withdraw', startedAt)('unavailable');
        throw error;
      }
    },
    probe: async (signal) => observe('balance', async () => gateway.probe(signal)),
    getStatus: async (gatewayId) => observe('transactionstatus', async () => gateway.getStatus(gatewayId)),
    ...(find && {
      findPayment: async (orderId) => observe('transactionstatus', async () => find(orderId)),
    }),
    readCurrencies: async () => observe('currencies', async () => gateway.readCurrencies()),
    readBalances: async (currencies) => observe('balance', async () => gateway.readBalances(currencies)),
  };
}

function observeConnection(connection: WithdrawConnection, begin: () => EndCall): WithdrawConnection {
  return {
    resendsForMs: connection.resendsForMs,
    get usable() {
      return connection.usable;
    },
    async withdraw(request, options) {
      const end = begin();
      const heard: Parameters<typeof hearHttpStatus>[0] = {};
      const outcome = await hearHttpStatus(heard, async () => connection.withdraw(request, options));
      end(WITHDRAW_OUTCOMES[outcome.kind], heard.httpStatus);
      return outcome;
    },
    reset: (reason) => {
      connection.reset(reason);
    },
    close: () => {
      connection.close();
    },
  };
}

function failureOf(error: unknown): Outcome {
  if (error instanceof InvalidInputError) return 'not_sent';
  if (error instanceof GatewayRejectedError) return 'rejected';
  return error instanceof GatewayUnavailableError ? 'unavailable' : 'invalid';
}
