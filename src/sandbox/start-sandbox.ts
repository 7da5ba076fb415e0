import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { z } from 'zod';
import { systemClock } from '../base/clock.js';
import { ConflictError } from '../base/errors.js';
import { parseInput } from '../base/fields.js';
import { failsafeLogger, silentLogger } from '../base/logger.js';
import { CONTROL_PREFIX, serveControl, type Sandbox, type SandboxControls } from './control-service.js';
import type { Dialect } from './dialect.js';
import { ENDPOINT_NAMES } from './endpoint-name.js';
import { faultRuleField } from './fault-rule.js';
import { GatewayService } from './gateway-service.js';
import { failed, sendResponse } from './response.js';
import { parseSandboxOptions, type SandboxOptions, type SandboxSettings } from './sandbox-options.js';
import { V1 } from './v1/dialect.js';
import { createV2 } from './v2/dialect.js';
import { Webhooks } from './v2/webhooks.js';

/**
 * Starts a local gateway that speaks both generations of the API (docs/gateway-api-v1.md, docs/gateway-api-v2.md) on the
 * same accounts, with the limit and the block.
 *
 * It is strict: two withdrawals of an account less than `minGapMs` apart block it. Every repeated payment with the same
 * recipient and amount is reported. All is in memory until `close()` or `reset()`, about 80 MB for 100,000 payments.
 * @throws InvalidInputError naming every option that is unknown or breaks a rule
 * @throws ConflictError if the port is taken
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const settings = parseSandboxOptions(options);
  const { clock = systemClock } = settings;
  const logger = failsafeLogger(settings.logger ?? silentLogger);
  const gateway = new GatewayService(settings, clock, logger);
  const controls = createControls(gateway);
  const webhooks = new Webhooks(settings, clock, logger);
  const dialects = [V1, createV2(settings.v2, webhooks)];
  const server = await startSocketServer(settings, (request, response) => {
    route({ gateway, controls, dialects }, request, response).catch((error: unknown) => {
      logger.error({ error }, 'the sandbox failed to serve a call');
      request.socket.destroy();
    });
  });
  const close = async (): Promise<void> => {
    gateway.close();
    webhooks.close();
    await server.close();
  };
  return {
    ...controls,
    url: server.url,
    port: server.port,
    seed: settings.seed,
    close,
    [Symbol.asyncDispose]: close,
  };
}

interface Served {
  readonly gateway: GatewayService;
  readonly controls: SandboxControls;
  readonly dialects: readonly Dialect[];
}

async function route(
  { gateway, controls, dialects }: Served,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const found = findEndpoint(dialects, path);
  if (found !== undefined) {
    await gateway.serve(found.dialect, found.endpoint, request, response);
  } else if (path.startsWith(CONTROL_PREFIX)) {
    const target = { name: path.slice(CONTROL_PREFIX.length), query: new URLSearchParams(query) };
    await serveControl(controls, target, request, response);
  } else {
    request.resume();
    sendResponse(request, response, failed('no such endpoint', 404));
  }
}

function findEndpoint(dialects: readonly Dialect[], path: string) {
  return dialects
    .flatMap((dialect) => ENDPOINT_NAMES.map((endpoint) => ({ dialect, endpoint })))
    .find(({ dialect, endpoint }) => path === `/${dialect.paths[endpoint]}`);
}

function createControls({ accounts, faults: plan, gate }: GatewayService): SandboxControls {
  const faultsInput = z.object({ faults: z.array(faultRuleField) });
  return {
    stats: (platformId) => accounts.get(platformId).stats(),
    arrivals: (platformId) => [...accounts.get(platformId).arrivals.all],
    payments: (platformId) => accounts.get(platformId).payments.all,
    faults: () => plan.rules,
    setFaults: (rules) => {
      plan.replace(parseInput(faultsInput, { faults: rules }).faults);
    },
    addFaults: (rules) => {
      plan.add(parseInput(faultsInput, { faults: rules }).faults);
    },
    unblock: (platformId) => {
      accounts.get(platformId).unblock();
    },
    reset: (platformId) => {
      accounts.reset(accounts.get(platformId).platformId);
    },
    pause: () => {
      gate.shut();
    },
    continue: () => {
      gate.open();
    },
  };
}

interface SocketServer {
  readonly url: string;
  readonly port: number;
  /** Closes every connection at once. Safe to call twice. */
  close(): Promise<void>;
}

/** @throws ConflictError if the address is taken */
async function startSocketServer(
  { host, port, tls }: SandboxSettings,
  listener: RequestListener,
): Promise<SocketServer> {
  const server = tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener);
  const sockets = trackSockets(server);
  await listen(server, port, host);

  const address = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${toUrlHost(host)}:${address.port}`,
    port: address.port,
    close: () => (closed ??= closeAll(server, sockets)),
  };
}

/** `closeAllConnections()` knows only sockets with an HTTP request; unfinished TLS handshakes would stay open. */
function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const isTaken = error.code === 'EADDRINUSE';
      reject(
        isTaken
          ? new ConflictError(`port ${port} on ${host} is taken: stop what listens there or choose another port`)
          : error,
      );
    });
    server.listen(port, host, resolve);
  });
}

async function closeAll(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = new Promise<void>((resolve) =>
    server.close(() => {
      resolve();
    }),
  );
  for (const socket of sockets) socket.destroy();
  await closed;
}

function toUrlHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
