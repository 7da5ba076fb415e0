import { once } from 'node:events';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { InvalidConfigError } from './errors.js';
import { toJsonLine } from './plain-text.js';

/** The health server of a process without payouts of its own: whether it lives, is ready, and its metrics. */

type Readiness = readonly [isReady: boolean, body: object];

export function answerHealth(registry: Registry, readiness: () => Readiness | Promise<Readiness>): RequestListener {
  const answer = async (path: string | undefined): Promise<readonly [status: number, body: object | string]> => {
    switch (path) {
      case '/healthz':
        return [200, { alive: true }];
      case '/readyz': {
        const [isReady, body] = await readiness();
        return [isReady ? 200 : 503, body];
      }
      case '/metrics':
        return [200, await registry.metrics()];
      default:
        return [404, { error: 'there are /healthz, /readyz and /metrics' }];
    }
  };
  return (request, response) => {
    request.resume();
    answer(request.url?.split('?')[0])
      .catch((error: unknown) => [500, { error: (error as Error).message }] as const)
      .then(([status, body]) => {
        const isText = typeof body === 'string';
        const type = isText ? registry.contentType : 'application/json; charset=utf-8';
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
        response.end(isText ? body : toJsonLine(body));
      })
      .catch(() => response.destroy());
  };
}

/** @returns host and port, as in a URL. @throws InvalidConfigError under the setting of the port if it cannot listen */
export async function listen(server: Server, host: string, port: number, field: string): Promise<string> {
  try {
    await once(server.listen(port, host), 'listening');
  } catch (error) {
    const message = `cannot listen on ${host} port ${port}: ${(error as Error).message}`;
    throw new InvalidConfigError([{ field, message }]);
  }
  return `${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}
