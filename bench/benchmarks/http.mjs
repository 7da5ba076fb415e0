import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PayoutProducer } from '../../dist/index.js';
import { createToken } from '../../dist/http/tokens.js';
import { startMeasuredRedis } from '../measured-redis.mjs';
import { figure } from '../report.mjs';
import { newAccount, samplePayouts } from '../sample-payouts.mjs';
import { median, secondsOf } from '../statistics.mjs';

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
export async function run({ quick, note }) {
  const { payouts: count, iterations } = quick ? { payouts: 500, iterations: 1 } : { payouts: 5_000, iterations: 7 };
  const redis = await startMeasuredRedis();
  const ways = { library: await openLibrary(redis.url), bare: await openBareServer(), door: await openDoor(redis.url) };
  try {
    const rates = [];
    for (let turn = 0; turn <= iterations; turn += 1) {
      const rate = {};
      // The other way goes first in the next turn.
      for (const name of turn % 2 === 0 ? ['library', 'bare', 'door'] : ['door', 'bare', 'library']) {
        rate[name] = await measure(redis, ways[name], samplePayouts(count, `turn-${turn}`));
      }
      if (turn > 0) {
        const [library, bare, door] = [rate.library, rate.bare, rate.door].map(({ perSecond }) => perSecond);
        rates.push({ ...rate, ratio: door / library, ofMost: door * (1 / library + 1 / bare) });
      }
      const what = turn === 0 ? 'warm' : `turn ${turn}: ${rates.at(-1).ratio.toFixed(2)}`;
      note(`${what} (load ${loadavg()[0].toFixed(1)})`);
    }
    const row = (way) => ({
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
    await Promise.all(Object.values(ways).map((way) => way.close()));
    await redis.close();
  }
}

async function measure(redis, way, payouts) {
  const send = await way.prepare(payouts);
  const before = await way.readCpu();
  const seconds = await secondsOf(send);
  if (way.platformId !== undefined) await untilQueued(redis, way, payouts.length);
  const cpuMicroseconds = ((await way.readCpu()) - before) / payouts.length;
  return { perSecond: payouts.length / seconds, cpuMicroseconds };
}

/** `enqueue` answers before its job is added: the jobs of one way must not slow the other. */
async function untilQueued(redis, way, count) {
  while ((await redis.client.zcard(`{payouts:${way.platformId}}:outbox`)) > 0) await delay(20);
  const queued = await redis.client.zcard(`{payouts:${way.platformId}}:state:queued`);
  way.sent += count;
  if (queued !== way.sent) throw new Error(`${queued} of ${way.sent} payouts are queued`);
}

async function openLibrary(redisUrl) {
  const { platformId } = newAccount();
  const producer = new PayoutProducer({ redisUrl, platformId });
  return {
    platformId,
    sent: 0,
    prepare: async (payouts) => async () => {
      const waiting = payouts.values();
      const lane = async () => {
        for (const payout of waiting) await producer.enqueue(payout);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
    },
    readCpu: async () => readCpu(process.pid),
    close: async () => producer.close(),
  };
}

async function openDoor(redisUrl) {
  const { platformId } = newAccount();
  const dir = await mkdtemp(join(tmpdir(), 'payouts-bench-'));
  const { token, line } = createToken({ name: 'bench', account: platformId, rights: ['enqueue'] });
  await writeFile(join(dir, 'tokens.yaml'), `${line}\n`, { mode: 0o600 });
  const child = spawn(process.execPath, [CLI, 'serve'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env.PATH,
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
    platformId,
    sent: 0,
    async close() {
      await server.close();
      await rm(dir, { recursive: true });
    },
  };
}

async function openBareServer() {
  const child = fork(fileURLToPath(new URL('../bare-server.mjs', import.meta.url)));
  const [port] = await once(child, 'message');
  return openClients(child, port, 'none');
}

function openClients(server, port, token) {
  const clients = fork(fileURLToPath(new URL('../http-clients.mjs', import.meta.url)), [String(port), token]);
  const ended = once(clients, 'exit');
  return {
    async prepare(payouts) {
      await ask(clients, ended, payouts);
      return async () => ask(clients, ended, 'go');
    },
    readCpu: async () => readCpu(server.pid),
    async close() {
      clients.kill();
      server.kill('SIGTERM');
      if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
    },
  };
}

async function readPort(child) {
  child.stderr.setEncoding('utf8');
  let log = '';
  for await (const text of child.stderr.iterator({ destroyOnReturn: false })) {
    log += text;
    const [, port] = /"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(log) ?? [];
    if (port !== undefined) {
      child.stderr.resume();
      return Number(port);
    }
  }
  throw new Error(`the door did not start:\n${log}`);
}

async function ask(clients, ended, message) {
  clients.send(message);
  const hasEnded = await Promise.race([once(clients, 'message').then(() => false), ended]);
  if (hasEnded) throw new Error('the clients ended');
}

/** Linux only: ticks of a hundredth of a second. */
async function readCpu(pid) {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
