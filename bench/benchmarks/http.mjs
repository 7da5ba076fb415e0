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
const WALLET = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';

/**
 * Payouts a second through the HTTP door from 50 keep-alive connections, against 50 calls of `enqueue` at a time in one
 * process. Both run for the whole benchmark, in turns on the same Redis, each with an account of its own, and both are
 * warm: the first payouts are not counted. The clients are a process of their own, and so is the door.
 */
export async function run({ quick, note }) {
  const { payouts: count, iterations } = quick ? { payouts: 500, iterations: 1 } : { payouts: 5_000, iterations: 7 };
  const redis = await startMeasuredRedis();
  const ways = { library: await openLibrary(redis.url), door: await openDoor(redis.url) };
  try {
    const rates = [];
    for (let turn = 0; turn <= iterations; turn += 1) {
      const rate = {};
      // The other way goes first in the next turn.
      for (const name of turn % 2 === 0 ? ['library', 'door'] : ['door', 'library']) {
        rate[name] = await measure(redis, ways[name], toOneWallet(samplePayouts(count, `turn-${turn}`)));
      }
      if (turn > 0) rates.push({ ...rate, ratio: rate.door.perSecond / rate.library.perSecond });
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
    const rows = [row('library'), row('door')];
    const name = `HTTP from ${AT_ONCE} connections, as a part of enqueue ${AT_ONCE} at a time`;
    return { rows, figures: [figure(name, median(rates.map(({ ratio }) => ratio)), { atLeast: 0.8 })] };
  } finally {
    await Promise.all(Object.values(ways).map((way) => way.close()));
    await redis.close();
  }
}

/** One wallet: of many random ones, some look like addresses with a wrong checksum. */
function toOneWallet(payouts) {
  return payouts.map((payout) => ({ ...payout, addressTo: WALLET }));
}

async function measure(redis, way, payouts) {
  const send = await way.prepare(payouts);
  const before = await way.readCpu();
  const seconds = await secondsOf(send);
  // `enqueue` answers before its job is added: the jobs of one way must not slow the other.
  while ((await redis.client.zcard(`{payouts:${way.platformId}}:outbox`)) > 0) await delay(20);
  const cpuMicroseconds = ((await way.readCpu()) - before) / payouts.length;
  const queued = await redis.client.zcard(`{payouts:${way.platformId}}:state:queued`);
  way.sent += payouts.length;
  if (queued !== way.sent) throw new Error(`${queued} of ${way.sent} payouts are queued`);
  return { perSecond: payouts.length / seconds, cpuMicroseconds };
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
  const port = await readPort(child);
  const clients = fork(fileURLToPath(new URL('../http-clients.mjs', import.meta.url)), [String(port), token]);
  const ended = once(clients, 'exit');
  return {
    platformId,
    sent: 0,
    async prepare(payouts) {
      await ask(clients, ended, payouts);
      return async () => ask(clients, ended, 'go');
    },
    readCpu: async () => readCpu(child.pid),
    async close() {
      clients.kill();
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
      await rm(dir, { recursive: true });
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
