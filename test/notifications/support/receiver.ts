import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Received = Readonly<{ path: string; headers: IncomingMessage['headers']; body: string }>;

export type Respond = (received: Received, response: ServerResponse) => void;

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** A real HTTP server that receives notifications, and responds with 204. */
export async function startReceiver(port = 0) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const each = { path: request.url ?? '', headers: request.headers, body };
      received.push(each);
      receiver.respond(each, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const respond: Respond = (_received, response) => void response.writeHead(204).end();
  const receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    respond,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}
