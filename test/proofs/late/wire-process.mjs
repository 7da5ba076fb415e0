// A bad line between two hosts: each UDP datagram is one IP packet of a TUN device (`wire.ts`), and is lost, delayed or
// overtaken here. As `tc netem` does it, which not every kernel has.
// argv[2]: {ends: [{listen, sendTo}, {listen, sendTo}], loss, minDelayMs, maxDelayMs, sparedPort} as JSON: the ports of both ends, the
// part of packets that are lost, and between what each is delayed; packets of `sparedPort` are carried at once.
import { createSocket } from 'node:dgram';

const { ends, loss, minDelayMs, maxDelayMs, sparedPort } = JSON.parse(process.argv[2]);

const sockets = ends.map(() => createSocket('udp4'));
for (const [index, socket] of sockets.entries()) {
  const [other, { sendTo }] = [sockets[1 - index], ends[1 - index]];
  socket.on('message', (packet) => {
    const pass = () => other.send(packet, sendTo, '127.0.0.1', () => undefined);
    // The ports follow the IP header, whose length in words of four bytes is in its first byte.
    const ports = 4 * (packet[0] & 15);
    if (packet.readUInt16BE(ports) === sparedPort || packet.readUInt16BE(ports + 2) === sparedPort) pass();
    // Packets with different delays overtake each other.
    else if (Math.random() >= loss) setTimeout(pass, minDelayMs + Math.random() * (maxDelayMs - minDelayMs));
  });
  socket.on('error', () => undefined);
  socket.bind(ends[index].listen, '127.0.0.1', () => process.stdout.write('ready\n'));
}
