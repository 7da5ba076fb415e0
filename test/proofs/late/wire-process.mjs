// A bad line between two hosts: each UDP datagram is one IP packet of a TUN device (`wire.ts`), and is lost, delayed or
// overtaken here. As `tc netem` does it, which not every kernel has.
// argv[2]: {ends: [{listen, sendTo}, {listen, sendTo}], loss, minDelayMs, maxDelayMs} as JSON: the ports of both ends, the
// part of packets that are lost, and between what each is delayed.
import { createSocket } from 'node:dgram';

const { ends, loss, minDelayMs, maxDelayMs } = JSON.parse(process.argv[2]);

const sockets = ends.map(() => createSocket('udp4'));
for (const [index, socket] of sockets.entries()) {
  const [other, { sendTo }] = [sockets[1 - index], ends[1 - index]];
  socket.on('message', (packet) => {
    if (Math.random() < loss) return;
    // Packets with different delays overtake each other.
    const delayMs = minDelayMs + Math.random() * (maxDelayMs - minDelayMs);
    setTimeout(() => other.send(packet, sendTo, '127.0.0.1', () => undefined), delayMs);
  });
  socket.on('error', () => undefined);
  socket.bind(ends[index].listen, '127.0.0.1', () => process.stdout.write('ready\n'));
}
