import { once } from 'node:events';
import { connect } from 'node:net';

/**
 * The clients of the HTTP door, in one process: given payouts, it connects and says so; told to go, it sends them from 50
 * connections and says when all are accepted.
 */

const AT_ONCE = 50;
const [port = '', token = ''] = process.argv.slice(2);
const HEAD = `POST /v1/payouts HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: `;

process.on('disconnect', () => process.exit());
for (;;) {
  const [payouts] = (await once(process, 'message')) as [readonly unknown[]];
  const requests = payouts.map((payout) => {
    const body = JSON.stringify(payout);
    return Buffer.from(`${HEAD}${Buffer.byteLength(body)}\r\n\r\n${body}`);
  });
  const clients = await Promise.all(Array.from({ length: AT_ONCE }, openClient));
  process.send?.('ready');
  await once(process, 'message');
  const waiting = requests.values();
  await Promise.all(clients.map(async (send) => send(waiting)));
  process.send?.('done');
}

/**
 * A keep-alive connection that sends the next request when it has the response. Not a client of HTTP, which would take
 * more of the processor than the door.
 */
async function openClient(): Promise<(requests: Iterator<Buffer>) => Promise<void>> {
  let next: (status: string) => void = () => undefined;
  let received = '';
  const callback = (length: number, bytes: Uint8Array): boolean => {
    received += Buffer.from(bytes.buffer, bytes.byteOffset, length).toString('latin1');
    const [, status = '', size] = /^HTTP\/1\.1 (\d+) .*\r\ncontent-length: (\d+)\r\n/is.exec(received) ?? [];
    const headEnd = received.indexOf('\r\n\r\n');
    if (headEnd !== -1 && received.length >= headEnd + 4 + Number(size)) next(status);
    return true;
  };
  const socket = connect({
    port: Number(port),
    host: '127.0.0.1',
    noDelay: true,
    onread: { buffer: Buffer.alloc(65_536), callback },
  });
  await once(socket, 'connect');
  return async (requests) =>
    new Promise((resolve, reject) => {
      socket.on('error', reject).on('close', () => {
        reject(new Error('the door closed a connection'));
      });
      next = (status) => {
        if (status !== '201') reject(new Error(received));
        const request = requests.next();
        received = '';
        if (request.done === true) {
          socket.destroy();
          resolve();
        } else socket.write(request.value);
      };
      next('201');
    });
}
