import { setMaxListeners } from 'node:events';
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
import { endpointOf } from './endpoint.js';
import { FaultPlan } from './fault-plan.js';
import { faultRuleField } from './fault-rule.js';
import { GatewayService, PauseGate } from './gateway-service.js';
import type { Settlement } from './handle-call.js';
import { createRandom, type Random } from './latency.js';
import { failed, sendResponse } from './response.js';
import { AccountRegistry } from './sandbox-account.js';
import { parseSandboxOptions, type SandboxOptions, type SandboxSettings } from './sandbox-options.js';

/**
 * Starts a local gateway that follows docs/gateway-api.md, including the limit and the block.
 *
 * It is strict: two withdrawals of an account less than `minGapMs` apart block it. Every repeated payment with the same
 * recipient and amount is reported. All is in memory until `close()` or `reset()`, about 80 MB for 100,000 payments.
 * @throws InvalidInputError naming every option that is unknown or breaks a rule
 * @throws ConflictError if the port is taken
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { clock = systemClock, logger: given = silentLogger, ...data } = options;
  const logger = failsafeLogger(given);
  const settings = parseSandboxOptions(data);
  const random = createRandom(settings.seed);
  const accounts = new AccountRegistry(
    settings.accounts.map((account) => ({ ...account, minGapMs: settings.minGapMs })),
  );
  const faults = new FaultPlan(random, settings.faults);
  const gate = new PauseGate();
  const closing = new AbortController();
  // Each waiting request listens to it.
  setMaxListeners(0, closing.signal);
  const controls = createControls(accounts, faults, gate);
  const gateway = new GatewayService({
    accounts,
    faults,
    gate,
    settlement: createSettlement(settings, random),
    latencyBeforeMs: settings.latencyBeforeMs,
    latencyAfterMs: settings.latencyAfterMs,
    random,
    clock,
    logger,
    signal: closing.signal,
  });

  const server = await startSocketServer({
    host: settings.host,
    port: settings.port,
    tls: settings.tls,
    listener: (request, response) => {
      route(gateway, controls, request, response).catch((error: unknown) => {
        logger.error({ error }, 'the sandbox failed to serve a call');
        request.socket.destroy();
      });
    },
  });
  return {
    ...controls,
    url: server.url,
    port: server.port,
    seed: settings.seed,
    close: async () => {
      closing.abort();
      gate.open();
      await server.close();
    },
  };
}

async function route(
  gateway: GatewayService,
  controls: SandboxControls,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const endpoint = endpointOf(path);
  if (endpoint !== undefined) {
    await gateway.serve(endpoint, request, response);
  } else if (path.startsWith(CONTROL_PREFIX)) {
    const target = { name: path.slice(CONTROL_PREFIX.length), query: new URLSearchParams(query) };
    await serveControl(controls, target, request, response);
  } else {
    request.resume();
    sendResponse(request, response, failed('no such endpoint', 404));
  }
}

function createSettlement(settings: SandboxSettings, random: Random): Settlement {
  const failAddresses = new Set(settings.failAddresses);
  return {
    settleAfterMs: settings.settleAfterMs,
    fails: (addressTo) => failAddresses.has(addressTo) || random() < settings.failShare,
  };
}

function createControls(accounts: AccountRegistry, plan: FaultPlan, gate: PauseGate): SandboxControls {
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

interface SocketServerOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly key: string; readonly cert: string } | undefined;
  readonly listener: RequestListener;
}

/** @throws ConflictError if the address is taken */
async function startSocketServer(options: SocketServerOptions): Promise<SocketServer> {
  const { host, port, tls, listener } = options;
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
