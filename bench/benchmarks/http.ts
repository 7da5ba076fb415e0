import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PayoutProducer } from 'payout-queue';
import type { BenchmarkResult, BenchmarkRun } from '../benchmark.js';
import { createToken } from '../../src/http/tokens.js';
import { type MeasuredRedis, startMeasuredRedis } from '../measured-redis.js';
import { figure } from '../figure.js';
import { readLoad } from '../report.js';
import { newAccount, type SamplePayout, samplePayouts } from '../sample-payouts.js';
import { median, secondsOf } from '../statistics.js';

const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const AT_ONCE = 50;

/**
 * Payouts a second through the HTTP door from 50 keep-alive connections, against 50 calls of `enqueue` at a time in one
 * process. Both run for the whole benchmark, in turns on the same Redis, each with an account of its own, and both are
 * warm: the first payouts are not counted. The clients are a process of their own, and so is the door.
 *
 * A bare server of node:http answers the same clients without doing anything. A process that also enqueues needs its time
 * and that of the library: this is the most that a door can reach on the machine.
 */
export async function run({ quick, note }: BenchmarkRun): Promise<BenchmarkResult> {
  const { payouts: count, iterations } = quick ? { payouts: 500, iterations: 1 } : { payouts: 5_000, iterations: 7 };
  const redis = await startMeasuredRedis();
  const ways = { library: openLibrary(redis.url), bare: await openBareServer(), door: await openDoor(redis.url) };
  try {
    const rates: TurnRates[] = [];
    for (let turn = 0; turn <= iterations; turn += 1) {
      const rate = { library: NO_RATE, bare: NO_RATE, door: NO_RATE };
      // The other way goes first in the next turn.
      for (const name of turn % 2 === 0 ? WAYS : WAYS.toReversed())
        rate[name] = await measure(redis, ways[name], samplePayouts(count, `turn-${turn}`));
      const [library, bare, door] = [rate.library.perSecond, rate.bare.perSecond, rate.door.perSecond];
      const ratio = door / library;
      if (turn > 0) rates.push({ ...rate, ratio, ofMost: door * (1 / library + 1 / bare) });
      note(`${turn === 0 ? 'warm' : `turn ${turn}: ${ratio.toFixed(2)}`} (load ${readLoad()})`);
    }
    const row = (way: WayName) => ({
      way,
      payouts: count,
      iterations,
      perSecond: median(rates.map((rate) => rate[way].perSecond)),
      cpuMicrosecondsEach: median(rates.map((rate) => rate[way].cpuMicroseconds)),
    });
    const rows = [row('library'), row('bare'), row('door')];
    const name = `HTTP from ${AT_ONCE} connections, as a part of enqueue ${AT_ONCE} at a time`;
    const figures = [
      figure(name, median(rates.map(({ ratio }) => ratio)), { atLeast: 0.8 }),
      figure('of what a bare server would leave of it', median(rates.map(({ ofMost }) => ofMost)), { atLeast: 0.8 }),
    ];
    return { rows, figures };
  } finally {
    await Promise.all(Object.values(ways).map(async (way) => way.close()));
    await redis.close();
  }
}

const WAYS = ['library', 'bare', 'door'] as const;
type WayName = (typeof WAYS)[number];

interface Rate {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
}

const NO_RATE: Rate = { perSecond: NaN, cpuMicroseconds: NaN };

interface TurnRates extends Readonly<Record<WayName, Rate>> {
  readonly ratio: number;
  readonly ofMost: number;
}

/** One that takes payouts. */
interface Way {
  /** Absent if it stores nothing. */
  readonly account?: { readonly platformId: number; sent: number };
  prepare(payouts: readonly SamplePayout[]): Promise<() => Promise<void>>;
  readCpu(): Promise<number>;
  close(): Promise<void>;
}

async function measure(redis: MeasuredRedis, way: Way, payouts: readonly SamplePayout[]): Promise<Rate> {
  const send = await way.prepare(payouts);
  const before = await way.readCpu();
  const seconds = await secondsOf(send);
  if (way.account !== undefined) await untilQueued(redis, way.account, payouts.length);
  const cpuMicroseconds = ((await way.readCpu()) - before) / payouts.length;
  return { perSecond: payouts.length / seconds, cpuMicroseconds };
}

/** `enqueue` answers before its job is added: the jobs of one way must not slow the other. */
async function untilQueued(redis: MeasuredRedis, account: NonNullable<Way['account']>, count: number): Promise<void> {
  while ((await redis.client.zcard(`{payouts:${account.platformId}}:outbox`)) > 0) await delay(20);
  const queued = await redis.client.zcard(`{payouts:${account.platformId}}:state:queued`);
  account.sent += count;
  if (queued !== account.sent) throw new Error(`${queued} of ${account.sent} payouts are queued`);
}

function openLibrary(redisUrl: string): Way {
  const { platformId } = newAccount();
  const producer = new PayoutProducer({ redisUrl, platformId });
  return {
    account: { platformId, sent: 0 },
    prepare: async (payouts) =>
      Promise.resolve(async () => {
        const waiting = payouts.values();
        const lane = async (): Promise<void> => {
          for (const payout of waiting) await producer.enqueue(payout);
        };
        await Promise.all(Array.from({ length: AT_ONCE }, lane));
      }),
    readCpu: async () => readCpu(process.pid),
    close: async () => producer.close(),
  };
}

async function openDoor(redisUrl: string): Promise<Way> {
  const { platformId } = newAccount();
  const dir = await mkdtemp(join(tmpdir(), 'payouts-bench-'));
  const { token, line } = createToken({ name: 'bench', account: platformId, rights: ['enqueue'] });
  await writeFile(join(dir, 'tokens.yaml'), `${line}\n`, { mode: 0o600 });
  const child = spawn(process.execPath, [CLI, 'serve'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      REDIS_URL: redisUrl,
      GATEWAY_PLATFORM_ID: String(platformId),
      SERVE_TOKENS_FILE: join(dir, 'tokens.yaml'),
      SERVE_PORT: '0',
      SERVE_HEALTH_PORT: '0',
    },
  });
  const server = openClients(child, await readPort(child), token);
  return {
    ...server,
    account: { platformId, sent: 0 },
    async close() {
      await server.close();
      await rm(dir, { recursive: true });
    },
  };
}

async function openBareServer(): Promise<Way> {
  const child = fork(fileURLToPath(new URL('../bare-server.ts', import.meta.url)));
  const [port] = (await once(child, 'message')) as [number];
  return openClients(child, port, 'none');
}

function openClients(server: ChildProcess, port: number, token: string): Way {
  const clients = fork(fileURLToPath(new URL('../http-clients.ts', import.meta.url)), [String(port), token]);
  const ended = once(clients, 'exit');
  return {
    async prepare(payouts) {
      await ask(clients, ended, payouts);
      return async () => ask(clients, ended, 'go');
    },
    readCpu: async () => readCpu(server.pid ?? NaN),
    async close() {
      clients.kill();
      server.kill('SIGTERM');
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
    },
  };
}

async function readPort({ stderr }: { readonly stderr: Readable }): Promise<number> {
  stderr.setEncoding('utf8');
  let log = '';
  for await (const text of stderr.iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
    log += text;
    const [, port] = /"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(log) ?? [];
    if (port !== undefined) {
      stderr.resume();
      return Number(port);
    }
  }
  throw new Error(`the door did not start:\n${log}`);
}

async function ask(
  clients: ChildProcess,
  ended: Promise<unknown>,
  message: 'go' | readonly SamplePayout[],
): Promise<void> {
  clients.send(message);
  const hasEnded = await Promise.race([once(clients, 'message').then(() => false), ended.then(() => true)]);
  if (hasEnded) throw new Error('the clients ended');
}

/** Linux only: ticks of a hundredth of a second. */
async function readCpu(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
