import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { until } from '../../support/until.js';
import { endChild, runChild } from './children.js';

/** What a bad line does to each IP packet, in both directions. Different delays let packets overtake each other. */
export interface BadLine {
  /** The part of packets that are lost. */
  readonly loss: number;
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
  /** Of the centre; it has a good line. */
  readonly sparedPort?: number;
}

const PROGRAM = fileURLToPath(new URL('wire-process.mjs', import.meta.url));
const FIRST_PORT = 20_000;
let ports = FIRST_PORT;

interface Ends {
  readonly inCentre: (...command: string[]) => string[];
  readonly start: (command: readonly string[], stdio: 'ignore' | 'pipe') => ChildProcess;
}

/**
 * Lays a bad line between two TUN devices of the centre: socat carries their packets to a process that loses and delays
 * them. One of the devices is then moved to its host.
 */
export async function layWire([near, far]: readonly [string, string], line: BadLine, { inCentre, start }: Ends) {
  const children: ChildProcess[] = [];
  const layEnd = async (device: string) => {
    const [sendTo, listen] = [(ports += 1), (ports += 1)];
    const tun = `TUN,tun-type=tun,tun-name=${device},iff-no-pi`;
    const udp = `UDP4-DATAGRAM:127.0.0.1:${listen},bind=127.0.0.1:${sendTo}`;
    children.push(start(['socat', '-b', '65535', tun, udp], 'ignore'));
    const isThere = async () =>
      runChild(inCentre('ip', 'link', 'show', device)).then(
        () => true,
        () => false,
      );
    await until(`the device ${device} is there`, isThere);
    return { listen, sendTo };
  };
  const ends = [await layEnd(near), await layEnd(far)];
  const wire = start([process.execPath, PROGRAM, JSON.stringify({ ends, ...line })], 'pipe');
  children.push(wire);
  let printed = '';
  wire.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await until('the line is laid', () => printed.split('\n').length > ends.length);
  return { close: async () => Promise.all(children.map(endChild)) };
}
