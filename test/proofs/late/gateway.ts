import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeSelfSignedCertificate } from '../../gateway/support/self-signed-certificate.js';
import { until } from '../../support/until.js';
import { endChild, runChild } from './children.js';
import { CENTRE, type AnyHost } from './network.js';
import type { Stage } from './stage.js';

/** A line of the gateway's book: see `gateway-process.mjs`. */
export interface Arrival {
  readonly platformId: number;
  readonly addressTo: string;
  readonly txhash: string;
  /** The host's address. */
  readonly from: string;
  /** When its head was read and when it was read whole, ms of the machine's monotonic clock. */
  readonly firstByteAt: number;
  readonly readAt: number;
}

type AskedBalance = Pick<Arrival, 'platformId' | 'readAt'>;

export interface GatewayOptions {
  /** Behind one port. @defaultValue 1 */
  readonly processes?: number;
  /** @defaultValue the centre */
  readonly host?: AnyHost | undefined;
}

/** Ms on the clock of {@link Arrival}. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

const PROGRAM = fileURLToPath(new URL('gateway-process.mjs', import.meta.url));
const FIRST_PORT = 8_001;
let started = 0;

export type LateGateway = Awaited<ReturnType<typeof startGateway>>;

export async function startGateway(stage: Stage, { processes = 1, host }: GatewayOptions = {}) {
  const index = (started += 1);
  const port = FIRST_PORT + index;
  const [book, records] = [join(stage.dir, `book-${index}`), join(stage.dir, `records-${index}`)];
  writeFileSync(book, '');
  const address = host?.address ?? CENTRE;
  const tls = makeSelfSignedCertificate(address);
  const caFile = join(stage.dir, `ca-${index}.pem`);
  writeFileSync(caFile, tls.cert);
  const settings = { port, book, records, processes, tls };
  const child = (host ?? stage.network).start([process.execPath, PROGRAM, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own, so that all its processes stop at once.
    detached: true,
  });
  await untilReady(child, processes);
  const group = -(child.pid ?? 0);
  return {
    ...{ port, caFile, url: `https://${address}:${port}` },
    /** The command that stops all its processes. */
    freezeCommand: ['kill', '-STOP', '--', String(group)],
    /** The command that stops those of its processes that have connections of a host. */
    freezeServing: (address: string) => {
      const listed = `ss -tnpH state established sport = :${port} dst ${address}`;
      const pids = `$(${listed} | grep -o 'pid=[0-9]*' | cut -d= -f2 | sort -u)`;
      return (host ?? stage.network).command('sh', '-c', `kill -STOP ${pids}`);
    },
    goOn: async () => runChild(['kill', '-CONT', '--', String(group)]),
    arrivals: (platformId: number) => readLines<Arrival>(book, platformId),
    /** When it read a request for the balance, as a probe is, ms. */
    askedAt: (platformId: number) => readLines<AskedBalance>(`${book}.asked`, platformId).map(({ readAt }) => readAt),
    /** Runs a command after it has read the next withdrawal, and before the response. */
    beforeNextResponse(platformId: number, command: readonly string[]) {
      writeFileSync(`${book}.command-${platformId}`, JSON.stringify(command));
    },
    /** When that command began, ms. */
    steppedAt(platformId: number) {
      const text = readIfThere(`${book}.stepped-${platformId}`);
      return text === '' ? undefined : Number(text);
    },
    /** What its owner says when asked: a gateway that stands still says it later. */
    askForPayments: async (platformId: number) => (await ask(records, `/${platformId}`)) as readonly Arrival[],
    async close() {
      try {
        process.kill(group, 'SIGKILL');
      } catch {
        // It is gone.
      }
      await endChild(child);
    },
  };
}

async function untilReady(child: ChildProcess, processes: number) {
  let printed = '';
  child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await until('the gateway serves', () => printed.split('\n').length > processes);
}

/** In the order in which they were read. */
const readLines = <Line extends AskedBalance>(file: string, platformId: number) =>
  readIfThere(file)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
    .filter((line) => line.platformId === platformId)
    .toSorted((one, other) => one.readAt - other.readAt);

const readIfThere = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

async function ask(socketPath: string, path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const asked = get({ socketPath, path, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => {
        resolve(JSON.parse(text));
      });
    });
    asked.on('error', reject);
  });
}
