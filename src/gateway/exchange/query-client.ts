import { randomUUID } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import { untilAborted } from '../../base/clock.js';
import { lookUpGateway } from '../../base/look-up.js';
import {
  describeFailure,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
} from '../gateway.js';
import { type GatewayAccess, post, type SignedRequest } from './exchange-once.js';
import { noteHttpStatus } from '../http-status.js';
import { parseResponse, type RawResponse, type ResponseFields } from './responses.js';

/** A query in the words of one API: its content was checked, and is signed. */
interface Query<Result> extends SignedRequest {
  /** Below the gateway's address. */
  readonly path: string;
  /** @throws GatewayInvalidResponseError if a needed field is missing or not as documented */
  readonly parseResult: (fields: ResponseFields) => Result;
}

/** Calls what moves no money. It may be repeated, so connections are kept and failures are exceptions. */
export interface QueryClient {
  /** @throws GatewayRejectedError, GatewayUnavailableError, GatewayInvalidResponseError */
  call<Result>(query: Query<Result>): Promise<Result>;
  /** Closes idle connections. */
  close(): void;
}

export function createQueryClient({ baseUrl, timeoutMs, ca, logger, clock }: GatewayAccess): QueryClient {
  const agent = baseUrl.startsWith('https:')
    ? new https.Agent({
        keepAlive: true,
        lookup: lookUpGateway,
        rejectUnauthorized: true,
        ...(ca === undefined ? {} : { ca }),
      })
    : new http.Agent({ keepAlive: true, lookup: lookUpGateway });

  return {
    async call({ path, parseResult, redact, ...signed }) {
      const log = logger.child({ requestId: randomUUID(), endpoint: path });
      const startedAtMs = clock.now();
      const raw = await ask(path, signed).catch((error: unknown) => {
        log.debug({ durationMs: Math.round(clock.now() - startedAtMs), outcome: 'unavailable' }, 'gateway called');
        throw error;
      });
      noteHttpStatus(raw.status);
      const response = parseResponse(raw);
      const durationMs = Math.round(clock.now() - startedAtMs);
      log.debug({ httpStatus: raw.status, durationMs, outcome: response.kind }, 'gateway called');

      if (response.kind === 'succeeded') return parseResult(response.fields);
      if (response.kind === 'failed') throw new GatewayRejectedError(path, redact(response.message));
      if (meansTryLater(raw.status))
        throw new GatewayUnavailableError(`The gateway did not respond to /${path}: ${response.reason}`, raw.status);
      throw new GatewayInvalidResponseError(path, response.reason);
    },
    close() {
      agent.destroy();
    },
  };

  async function ask(path: string, signed: Pick<SignedRequest, 'body' | 'headers'>): Promise<RawResponse> {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return await post({ url: `${baseUrl}/${path}`, ...signed }, agent, signal);
    } catch (error) {
      const reason = signal.aborted ? `no complete response within ${timeoutMs} ms` : describeFailure(error);
      throw new GatewayUnavailableError(`The gateway did not respond to /${path}: ${reason}`);
    }
  }
}

function meansTryLater(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}

/**
 * A probe of the gateway by a query under way: whether it responds. A refusal is a response.
 * @throws GatewayUnavailableError if it does not, or the signal aborts
 */
export async function probeBy(query: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const aborted = untilAborted(signal).then(() => {
    throw new GatewayUnavailableError('aborted');
  });
  try {
    await Promise.race([query, aborted]);
  } catch (error) {
    if (error instanceof GatewayUnavailableError) throw error;
  }
}
