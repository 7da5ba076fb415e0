import { DelayedError, type Job, TelemetryAttributes, UnrecoverableError, WaitingError } from 'bullmq';
import type { GatewayApi } from '../base/settings.js';
import { beginSpan, inSpan } from '../base/tracing.js';
import { pathOf } from '../gateway/open-gateway.js';
import { RedisSenderLedger } from '../ledger/redis-sender-ledger.js';
import type { PayoutJobData } from '../queues/payout-queues.js';
import type { GatewayCall, WorkerObserver } from './sender/worker-observer.js';

/** Runs a job in a span that continues the trace in which it was added. */
export async function inJobSpan<Result>(
  name: string,
  job: Pick<Job<PayoutJobData>, 'queueName' | 'id' | 'data' | 'opts'>,
  platformId: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const { queueName, id = '', data, opts } = job;
  const attributes = {
    [TelemetryAttributes.QueueName]: queueName,
    [TelemetryAttributes.QueueOperation]: 'process',
    [TelemetryAttributes.JobId]: id,
    ...payoutAttributes(platformId, data.payoutId),
  };
  const carrier = opts.telemetry?.metadata;
  const ended = await inSpan(name, { kind: 'consumer', attributes, carrier }, async () => {
    try {
      return { result: await work() };
    } catch (error) {
      if (isPlanned(error)) return { error };
      throw error;
    }
  });
  if ('error' in ended) throw ended.error;
  return ended.result;
}

/** BullMQ is told by an error what becomes of a job: no fault. */
function isPlanned(error: unknown): boolean {
  return [DelayedError, WaitingError, UnrecoverableError].some((kind) => error instanceof kind);
}

/** Of each span about one payout. */
function payoutAttributes(platformId: number, payoutId: string) {
  return { 'payouts.platform_id': platformId, 'payouts.payout_id': payoutId };
}

const FAILED: ReadonlySet<string> = new Set(['unavailable', 'invalid']);

/** As the HTTP conventions have it: the status is the type of an error, if one came. */
function errorOf({ outcome, httpStatus = 0 }: NonNullable<GatewayCall['end']>): string | undefined {
  if (httpStatus >= 400) return String(httpStatus);
  return FAILED.has(outcome) ? outcome : undefined;
}

/**
 * The same observer, whose measurements are spans too, within a trace.
 * @param baseUrl - of the gateway, if it has one
 */
export function traceMeasurements(
  observer: WorkerObserver,
  baseUrl: string | undefined,
  api: GatewayApi,
): WorkerObserver {
  const describe = baseUrl === undefined ? () => ({}) : describeRequest(new URL(baseUrl), api);
  const open = new WeakMap<GatewayCall, ReturnType<typeof beginSpan>>();
  return {
    ...observer,
    pacerWaited: (waitedMs) => {
      beginSpan('wait for the slot', {}, waitedMs)?.end();
      observer.pacerWaited(waitedMs);
    },
    journalSynced: (durationMs) => {
      beginSpan('journal sync', {}, durationMs)?.end();
      observer.journalSynced(durationMs);
    },
    gatewayCalled: (asked) => {
      const { endpoint, end } = asked;
      if (end === undefined) {
        open.set(asked, beginSpan(`POST /${endpoint}`, { kind: 'client', attributes: describe(endpoint) }));
      } else {
        const { outcome, httpStatus } = end;
        const error = errorOf(end);
        const attributes = {
          'payouts.outcome': outcome,
          ...(httpStatus !== undefined && { 'http.response.status_code': httpStatus }),
          ...(error !== undefined && { 'error.type': error }),
        };
        open.get(asked)?.end(attributes, error !== undefined);
      }
      observer.gatewayCalled?.(asked);
    },
  };
}

function describeRequest({ hostname, port, protocol, origin, pathname }: URL, api: GatewayApi) {
  const server = { 'server.address': hostname, 'server.port': Number(port || (protocol === 'https:' ? 443 : 80)) };
  const base = `${origin}${pathname.replace(/\/$/, '')}`;
  return (endpoint: GatewayCall['endpoint']) => {
    return { 'http.request.method': 'POST', 'url.full': `${base}/${pathOf(api, endpoint)}`, ...server };
  };
}

/** The ledger of sends, with a span for a begin and for the record of an outcome. */
export class TracedSenderLedger extends RedisSenderLedger {
  override async beginSend(...args: Parameters<RedisSenderLedger['beginSend']>) {
    const attributes = { 'payouts.attempt': args[0].attempt };
    return inSpan('begin', { attributes }, async () => super.beginSend(...args));
  }

  override async finishSend(...args: Parameters<RedisSenderLedger['finishSend']>) {
    const attributes = { 'payouts.outcome': args[1].kind };
    return inSpan('record', { attributes }, async () => super.finishSend(...args));
  }
}
