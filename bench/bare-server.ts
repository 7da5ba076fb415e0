import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the HTTP door costs at least: a server of node:http that reads each request and answers as much, in one process. */
const BODY = JSON.stringify({ payoutId: 'turn-0-payout-00000', created: true, state: 'queued' });
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(BODY) });
    response.end(BODY);
  });
});
process.on('disconnect', () => process.exit());
await once(server.listen(0, '127.0.0.1'), 'listening');
process.send?.((server.address() as AddressInfo).port);
