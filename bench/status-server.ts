// A process that responds to every /transactionstatus and /v2/withdrawstatus with `approve` 0, as cheaply as it can: what
// is measured is the polling.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Asked {
  readonly transactionId?: string;
}

const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (text: string) => (body += text));
  request.on('end', () => {
    const { transactionId } = request.url === '/v2/withdrawstatus' ? (JSON.parse(body) as Asked) : {};
    const name = transactionId === undefined ? { txhash: new URLSearchParams(body).get('txhash') } : { transactionId };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ result: 1, approve: 0, ...name }));
  });
});
// A connection that the server ends is one that the client has to make again.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.once('disconnect', () => process.exit());
