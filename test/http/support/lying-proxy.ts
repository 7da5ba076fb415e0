import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Lie = (response: ServerResponse, answer: Buffer) => void;

const page = (status: number, headers: Record<string, string> = {}): Lie => {
  return (response) =>
    response.writeHead(status, { 'content-type': 'text/html', ...headers }).end('<h1>Not the door</h1>');
};

/** What is said about a request in place of the door's answer; the door has done it. */
export const LIES: readonly Lie[] = [
  (response) => response.destroy(),
  page(502),
  page(200),
  page(404),
  page(302, { location: '/login' }),
  (response, answer) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(answer.length) });
    response.write(answer.subarray(0, answer.length / 2));
    setTimeout(() => response.destroy(), 20);
  },
];

/** A stream of events is cut after so many bytes, in the middle of an event, and by and by later. */
const CUT_AFTER_BYTES = [10, 300, 700, 1_500, 3_000];

/** Answers each request with every lie before it tells the truth. */
export async function openLyingProxy(target: string) {
  let asked = 0;
  let streams = 0;
  const server = createServer((incoming, response) => {
    void pass(incoming, response);
  });
  const pass = async (incoming: IncomingMessage, response: ServerResponse) => {
    const { method, url = '/', headers } = incoming;
    const passed = request(`${target}${url}`, { method, headers: { ...headers, host: new URL(target).host } });
    incoming.pipe(passed);
    const [answer] = (await once(passed, 'response')) as [IncomingMessage];
    if (answer.headers['content-type'] === 'text/event-stream') {
      cutStream(answer, response, CUT_AFTER_BYTES[streams]);
      streams += 1;
      return;
    }
    const body = Buffer.concat((await answer.toArray()) as Buffer[]);
    const lie = LIES[asked % (LIES.length + 1)];
    asked += 1;
    if (lie !== undefined) lie(response, body);
    else response.writeHead(answer.statusCode ?? 0, answer.headers).end(body);
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    streams: () => streams,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function cutStream(answer: IncomingMessage, response: ServerResponse, afterBytes = Infinity) {
  let left = afterBytes;
  // Not the door's `transfer-encoding`: a reader by HTTP/1.0 gets none.
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  answer.on('data', (chunk: Buffer) => {
    if (left <= 0) return;
    response.write(chunk.subarray(0, left));
    left -= chunk.length;
    if (left > 0) return;
    answer.destroy();
    // What was written gets there first.
    setTimeout(() => response.destroy(), 20);
  });
  response.once('close', () => answer.destroy());
}
