import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { Counter, type Registry } from 'prom-client';
import { within } from '../base/clock.js';
import { endIdleConnections } from '../base/end-idle-connections.js';
import { listen } from '../base/health-server.js';
import type { Logger } from '../base/logger.js';
import { EVENT_RESULTS, type EventResult, type GatewayEvents } from './gateway-events.js';

/**
 * Takes the gateway's webhooks for `payouts worker`. Anyone may send anything here: each request costs little time, no
 * memory beyond its body, and ends soon.
 */

const EVENTS_PATH = '/gateway-events';

/** An account for which messages may come. */
interface EventAccount {
  readonly platformId: number;
  readonly events: Pick<GatewayEvents, 'take'> | undefined;
}

interface EventServerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly registry: Registry;
  /** Empty while the worker's creation waits for Redis. */
  readonly accounts: () => readonly EventAccount[];
  readonly logger: Logger;
}

export interface EventServer {
  readonly url: string;
  /** Answers what it has read. Safe to call twice. */
  close(): Promise<void>;
}

/** `refused`: it was no message: another path or method, too long, or not sent to its end in time. */
const COUNTED_RESULTS = [...EVENT_RESULTS, 'refused'] as const;

type CountedResult = (typeof COUNTED_RESULTS)[number];

interface Reply {
  readonly status: number;
  readonly result: CountedResult;
  readonly headers?: Readonly<Record<string, string>>;
}

const MAX_BODY_BYTES = 16 * 1_024;

/** A slow client holds a connection for some seconds only. A gateway sends one message at a time. */
const SERVER_LIMITS = {
  maxHeaderSize: 8_192,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 5_000,
} as const;
const CONNECTION_LIMITS = { maxConnections: 100, maxHeadersCount: 64, timeout: 15_000 } as const;
const MOST_BEFORE_IDLE_END = 90;
const CLOSE_WITHIN_MS = 2_000;

/**
 * The gateway must get 200, else it sends the message again some times. That is wanted only if another time may help:
 * the payment is not known yet, or Redis does not answer.
 */
const STATUS_OF: Readonly<Record<EventResult, number>> = {
  heeded: 200,
  repeated: 200,
  settled: 200,
  unreadable: 200,
  unknown: 404,
  forged: 401,
  unavailable: 503,
};

/** @throws InvalidConfigError if it cannot listen */
export async function startEventServer(options: EventServerOptions): Promise<EventServer> {
  const server = Object.assign(createServer(SERVER_LIMITS, serve(options)), CONNECTION_LIMITS);
  endIdleConnections(server, MOST_BEFORE_IDLE_END);
  const url = `http://${await listen(server, options.host, options.port, 'GATEWAY_EVENTS_PORT')}`;
  return {
    url: `${url}${EVENTS_PATH}`,
    async close() {
      if (!server.listening) return;
      server.keepAliveTimeout = 1;
      await within(CLOSE_WITHIN_MS, once(server.close(), 'close'));
      server.closeAllConnections();
    },
  };
}

function serve({ registry, accounts, logger }: EventServerOptions): RequestListener {
  const messages = new Counter({
    name: 'payouts_gateway_events_total',
    help: 'Messages (webhooks) that came for an account, by what became of them; `refused` was no message.',
    labelNames: ['platform_id', 'result'],
    registers: [registry],
    // Prometheus sees no increase in a series that begins at 1.
    collect() {
      for (const { platformId } of takersOf(accounts()))
        for (const result of COUNTED_RESULTS) this.inc({ platform_id: String(platformId), result }, 0);
    },
  });

  const answer = async (request: IncomingMessage, account: EventAccount | undefined): Promise<Reply | undefined> => {
    if (account?.events === undefined) return { status: accounts().length === 0 ? 503 : 404, result: 'refused' };
    if (request.method !== 'POST') return { status: 405, result: 'refused', headers: { allow: 'POST' } };
    const body = await readBody(request);
    if (body === 'cut') return undefined;
    if (body === 'too_long') return { status: 413, result: 'refused' };
    const result = await account.events.take({ headers: request.headers, body });
    return { status: STATUS_OF[result], result };
  };

  const run = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const account = find(request.url ?? '', accounts());
    const reply = await answer(request, account);
    messages.inc({ platform_id: String(account?.platformId ?? 'none'), result: reply?.result ?? 'refused' });
    if (reply === undefined) response.destroy();
    else write(request, response, reply);
  };

  return (request, response) => {
    run(request, response).catch((error: unknown) => {
      logger.error({ error: (error as Error).message }, 'a message of the gateway could not be answered');
      response.destroy();
    });
  };
}

/** The account of the path. The path alone names the only account that takes messages. */
function find(url: string, accounts: readonly EventAccount[]): EventAccount | undefined {
  const path = url.split('?')[0] ?? '';
  const taking = takersOf(accounts);
  if (path === EVENTS_PATH) return taking.length === 1 ? taking[0] : undefined;
  return taking.find(({ platformId }) => path === `${EVENTS_PATH}/${platformId}`);
}

function takersOf(accounts: readonly EventAccount[]): EventAccount[] {
  return accounts.filter(({ events }) => events !== undefined);
}

async function readBody(request: IncomingMessage): Promise<Buffer | 'too_long' | 'cut'> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const cut = (): void => {
      resolve('cut');
    };
    request
      .on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length <= MAX_BODY_BYTES) chunks.push(chunk);
        else resolve('too_long');
      })
      .on('end', () => {
        resolve(Buffer.concat(chunks));
      })
      .on('error', cut)
      .on('close', cut);
  });
}

function write(request: IncomingMessage, response: ServerResponse, { status, result, headers }: Reply): void {
  if (response.destroyed) return;
  const text = JSON.stringify({ result });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': text.length,
    'cache-control': 'no-store',
    // What is left of a body would be read as the next request.
    ...(request.complete ? {} : { connection: 'close' }),
    ...headers,
  });
  response.end(text);
}
