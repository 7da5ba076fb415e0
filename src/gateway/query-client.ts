import { randomUUID } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import type { Clock } from '../clock.js';
import type { Logger } from '../logger.js';
import { readAnswer, type AnswerFields, type RawAnswer } from './response.js';
import { describeFailure } from './describe-failure.js';
import { GatewayInvalidResponseError, GatewayRejectedError, GatewayUnavailableError } from './errors.js';
import { postForm } from './post-form.js';
import type { RequestSigner } from './request-signer.js';
import type { Endpoint, RequestData } from './schemas.js';

export interface ReadCallerOptions {
  readonly baseUrl: string;
  readonly sign: RequestSigner;
  /** For the whole call, connecting included. */
  readonly timeoutMs: number;
  readonly ca?: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

export interface ReadCaller {
  /**
   * @returns the fields of a successful answer
   * @throws GatewayRejectedError, GatewayUnavailableError, GatewayInvalidResponseError
   */
  call(endpoint: Exclude<Endpoint, 'withdraw'>, data: Omit<RequestData, 'platformId'>): Promise<AnswerFields>;
  /** Closes the connections that are kept open for the next call. */
  close(): void;
}

/** Calls the endpoints that move no money. They may be asked again, so connections are kept and failures are exceptions. */
export function createReadCaller({ baseUrl, sign, timeoutMs, ca, logger, clock }: ReadCallerOptions): ReadCaller {
  const agent = baseUrl.startsWith('https:')
    ? new https.Agent({ keepAlive: true, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) })
    : new http.Agent({ keepAlive: true });

  return {
    async call(endpoint, data) {
      const { body, redact } = sign(endpoint, data);
      const log = logger.child({ requestId: randomUUID(), endpoint });
      const startedAtMs = clock.now();
      const raw = await post(endpoint, body).catch((error: unknown) => {
        log.debug({ durationMs: Math.round(clock.now() - startedAtMs), outcome: 'unavailable' }, 'gateway called');
        throw error;
      });
      const answer = readAnswer(raw);
      const durationMs = Math.round(clock.now() - startedAtMs);
      log.debug({ httpStatus: raw.status, durationMs, outcome: answer.kind }, 'gateway called');

      if (answer.kind === 'succeeded') return answer.fields;
      if (answer.kind === 'failed') throw new GatewayRejectedError(endpoint, redact(answer.message));
      if (saysTryLater(raw.status))
        throw new GatewayUnavailableError(`The gateway did not answer /${endpoint}: ${answer.reason}`);
      throw new GatewayInvalidResponseError(endpoint, answer.reason);
    },
    close() {
      agent.destroy();
    },
  };

  async function post(endpoint: Endpoint, body: string): Promise<RawAnswer> {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return await postForm(`${baseUrl}/${endpoint}`, body, agent, signal);
    } catch (error) {
      const reason = signal.aborted ? `no whole answer within ${timeoutMs} ms` : describeFailure(error);
      throw new GatewayUnavailableError(`The gateway did not answer /${endpoint}: ${reason}`);
    }
  }
}

function saysTryLater(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}
