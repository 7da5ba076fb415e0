// Lets a host without a way to the test's process reach the gateway: forwards a local port to a socket of the disk.
import { createServer, connect } from 'node:net';

const [port, path] = process.argv.slice(2);
createServer({ allowHalfOpen: true }, (client) => {
  const gateway = connect({ path, allowHalfOpen: true });
  client.pipe(gateway).pipe(client);
  client.on('error', () => gateway.destroy());
  gateway.on('error', () => client.destroy());
}).listen(Number(port), '127.0.0.1');
