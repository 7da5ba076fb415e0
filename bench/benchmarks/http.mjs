import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

/** One wallet: of many random ones, some look like addresses with a wrong checksum. */
function toOneWallet(payouts) {
  return payouts.map((payout) => ({ ...payout, addressTo: WALLET }));
}

/**
 * Payouts a second through the HTTP door from 50 keep-alive connections, against 50 calls of `enqueue` at a time in one
 * process, in turns on the same Redis; and the processor time that a payout takes in each.
 */
export async function run({ quick, note }) {
  const { payouts: count, iterations } = quick ? { payouts: 500, iterations: 1 } : { payouts: 5_000, iterations: 5 };
  const redis = await startMeasuredRedis();
  try {
    const rates = [];
    for (let iteration = 0; iteration < iterations; iteration += 1) {
      const library = await measureLibrary(redis, count);
      const door = await measureDoor(redis, count);
      rates.push({ library, door, ratio: door.perSecond / library.perSecond });
      note(`turn ${iteration + 1}: ${rates.at(-1).ratio.toFixed(2)}`);
    }
    const row = (way) => ({
      way,
      payouts: count,
      iterations,
      perSecond: median(rates.map((rate) => rate[way].perSecond)),
      cpuMicrosecondsEach: median(rates.map((rate) => rate[way].cpuMicroseconds)),
    });
    const ratio = median(rates.map((rate) => rate.ratio));
    return {
      rows: [row('library'), row('door')],
      figures: [
        figure(`HTTP from ${AT_ONCE} connections, as a part of enqueue ${AT_ONCE} at a time`, ratio, { atLeast: 0.8 }),
      ],
    };
  } finally {
    await redis.close();
  }
}

async function measureLibrary(redis, count) {
  const { platformId } = newAccount();
  const producer = new PayoutProducer({ redisUrl: redis.url, platformId });
  await producer.enqueueMany(toOneWallet(samplePayouts(AT_ONCE, 'first')));
  const payouts = toOneWallet(samplePayouts(count)).values();
  const before = process.cpuUsage();
  const seconds = await secondsOf(async () => {
    const lane = async () => {
      for (const payout of payouts) await producer.enqueue(payout);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  });
  const { user, system } = process.cpuUsage(before);
  await producer.close();
  return { perSecond: count / seconds, cpuMicroseconds: (user + system) / count };
}

async function measureDoor(redis, count) {
  const { platformId } = newAccount();
  const dir = await mkdtemp(join(tmpdir(), 'payouts-bench-'));
  const { token, line } = createToken({ name: 'bench', account: platformId, rights: ['enqueue'] });
  await writeFile(join(dir, 'tokens.yaml'), `${line}\n`, { mode: 0o600 });
  const child = spawn(process.execPath, [CLI, 'serve'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      PATH: process.env.PATH,
      REDIS_URL: redis.url,
      GATEWAY_PLATFORM_ID: String(platformId),
      SERVE_TOKENS_FILE: join(dir, 'tokens.yaml'),
      SERVE_PORT: '0',
      SERVE_HEALTH_PORT: '0',
    },
  });
  const port = await readPort(child);
  await send(port, token, toOneWallet(samplePayouts(AT_ONCE, 'first')));
  const before = await readCpu(child.pid);
  const seconds = await secondsOf(() => send(port, token, toOneWallet(samplePayouts(count))));
  const cpuMicroseconds = ((await readCpu(child.pid)) - before) / count;
  child.kill('SIGTERM');
  await once(child, 'exit');
  await rm(dir, { recursive: true });
  const queued = await redis.client.zcard(`{payouts:${platformId}}:state:queued`);
  if (queued !== count + AT_ONCE) throw new Error(`${queued} of ${count + AT_ONCE} payouts are queued`);
  return { perSecond: count / seconds, cpuMicroseconds };
}

async function readPort(child) {
  child.stderr.setEncoding('utf8');
  let log = '';
  for await (const text of child.stderr) {
    log += text;
    const [, port] = /"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(log) ?? [];
    if (port !== undefined) {
      child.stderr.resume();
      return Number(port);
    }
  }
  throw new Error(`the door did not start:\n${log}`);
}

/** Sockets and not a client of HTTP, which would take more of the processor than the door. */
async function send(port, token, payouts) {
  const waiting = payouts.values();
  const lane = async () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    for (const payout of waiting) {
      const body = JSON.stringify(payout);
      socket.write(
        `POST /v1/payouts HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
      const [response] = await once(socket, 'data');
      if (!response.toString('latin1').startsWith('HTTP/1.1 201')) throw new Error(response.toString());
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

/** Linux only: ticks of a hundredth of a second. */
async function readCpu(pid) {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
