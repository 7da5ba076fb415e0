import type { Clock } from '../../base/clock.js';
import { InvalidInputError } from '../../base/errors.js';
import {
  type Gateway,
  GatewayRejectedError,
  GatewayUnavailableError,
  type WithdrawConnection,
  type WithdrawOutcome,
} from '../../gateway/gateway.js';
import type { GatewayCall, WorkerObserver } from '../sender/worker-observer.js';

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

  const begin = (endpoint: GatewayCall['endpoint'], startedAt = clock.now()): ((outcome: Outcome) => void) => {
    const call: GatewayCall = { endpoint };
    gatewayCalled(call);
    return (outcome) => {
      call.end = { outcome, durationMs: clock.now() - startedAt };
      gatewayCalled(call);
    };
  };
  const observe = async <Result>(endpoint: GatewayCall['endpoint'], query: Promise<Result>): Promise<Result> => {
    const end = begin(endpoint);
    try {
      const result = await query;
      end('answered');
      return result;
    } catch (error) {
      end(failureOf(error));
      throw error;
    }
  };

  return {
    capabilities: gateway.capabilities,
    comparePayment: (status, payment) => gateway.comparePayment(status, payment),
    classifyStop: (message, httpStatus) => gateway.classifyStop(message, httpStatus),
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
    probe: async (signal) => observe('balance', gateway.probe(signal)),
    getStatus: async (gatewayId) => observe('transactionstatus', gateway.getStatus(gatewayId)),
    readCurrencies: async () => observe('currencies', gateway.readCurrencies()),
    readBalances: async (currencies) => observe('balance', gateway.readBalances(currencies)),
  };
}

function observeConnection(
  connection: WithdrawConnection,
  begin: () => (outcome: Outcome) => void,
): WithdrawConnection {
  return {
    resendsForMs: connection.resendsForMs,
    get usable() {
      return connection.usable;
    },
    async withdraw(request, options) {
      const end = begin();
      const outcome = await connection.withdraw(request, options);
      end(WITHDRAW_OUTCOMES[outcome.kind]);
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
