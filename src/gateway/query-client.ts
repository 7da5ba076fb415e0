import { randomUUID } from 'node:crypto';
import http from 'node:http';
import https from 'node:https';
import type { z } from 'zod';
import type { Clock } from '../clock.js';
import { parseInput } from '../fields.js';
import { lookUpGateway } from '../look-up.js';
import type { Logger } from '../logger.js';
import type { Endpoint } from './endpoints.js';
import {
  describeFailure,
  GatewayInvalidResponseError,
  GatewayRejectedError,
  GatewayUnavailableError,
} from './errors.js';
import { postForm } from './post-form.js';
import type { RequestSigner } from './request-signer.js';
import { parseResponse, type RawResponse } from './response.js';

export interface QueryClientOptions {
  readonly baseUrl: string;
  readonly sign: RequestSigner;
  readonly timeoutMs: number;
  readonly ca?: string;
  readonly logger: Logger;
  readonly clock: Clock;
}

export interface QueryClient {
  /**
   * @throws InvalidInputError if the request breaks a rule and was not sent; GatewayRejectedError,
   * GatewayUnavailableError, GatewayInvalidResponseError
   */
  call<Shape extends z.ZodRawShape, Result>(
    endpoint: Endpoint<Shape, Result>,
    request: z.input<z.ZodObject<Shape>>,
  ): Promise<Result>;
  close(): void;
}

/**
 * Calls the endpoints that move no money. They may be repeated, so connections are kept and failures are exceptions.
 */
export function createQueryClient({ baseUrl, sign, timeoutMs, ca, logger, clock }: QueryClientOptions): QueryClient {
  const agent = baseUrl.startsWith('https:')
    ? new https.Agent({
        keepAlive: true,
        lookup: lookUpGateway,
        rejectUnauthorized: true,
        ...(ca === undefined ? {} : { ca }),
      })
    : new http.Agent({ keepAlive: true, lookup: lookUpGateway });

  return {
    async call({ path, signedFields, request: schema, parseResult }, input) {
      const request = parseInput(schema, input);
      const { body, redact } = sign(signedFields, request);
      const log = logger.child({ requestId: randomUUID(), endpoint: path });
      const startedAtMs = clock.now();
      const raw = await post(path, body).catch((error: unknown) => {
        log.debug({ durationMs: Math.round(clock.now() - startedAtMs), outcome: 'unavailable' }, 'gateway called');
        throw error;
      });
      const response = parseResponse(raw);
      const durationMs = Math.round(clock.now() - startedAtMs);
      log.debug({ httpStatus: raw.status, durationMs, outcome: response.kind }, 'gateway called');

      if (response.kind === 'succeeded') return parseResult(response.fields, request);
      if (response.kind === 'failed') throw new GatewayRejectedError(path, redact(response.message));
      if (meansTryLater(raw.status))
        throw new GatewayUnavailableError(`The gateway did not respond to /${path}: ${response.reason}`);
      throw new GatewayInvalidResponseError(path, response.reason);
    },
    close() {
      agent.destroy();
    },
  };

  async function post(path: string, body: string): Promise<RawResponse> {
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      return await postForm(`${baseUrl}/${path}`, body, agent, signal);
    } catch (error) {
      const reason = signal.aborted ? `no complete response within ${timeoutMs} ms` : describeFailure(error);
      throw new GatewayUnavailableError(`The gateway did not respond to /${path}: ${reason}`);
    }
  }
}

function meansTryLater(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}
