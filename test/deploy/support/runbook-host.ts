import { readFileSync } from 'node:fs';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort } from '../../../src/sandbox/local-redis.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { startProgram } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { makeFolder } from '../../worker/support/close-after-test.js';

/** Of every Redis: the operator has exported it as REDISCLI_AUTH. */
export const REDIS_PASSWORD = 'runbook-0123456789';
const FOLDERS = [
  'bin',
  'run',
  'backup',
  'etc/payouts/secrets',
  'etc/redis',
  'etc/systemd/system',
  'var/lib/payouts/journal',
  'var/lib/redis',
];

/** Short times; the interval between sends is the real one. */
const QUICK = `LEASE_MS=1500
TAKEOVER_QUARANTINE_MS=1000
IN_FLIGHT_MAX_MS=2000
STATUS_POLL_MIN_MS=200
STATUS_POLL_MAX_MS=1000
HEALTH_PORT=0
NOTIFY_HEALTH_PORT=0
`;

/** The blocks of a page of docs/ that are marked as this, in their order. */
export async function blocksOf(page: string, language = 'sh') {
  const text = await readFile(new URL(`../../../docs/${page}.md`, import.meta.url), 'utf8');
  return [...text.matchAll(/^ *```(\w*)\n(.*?)^ *```$/gms)].flatMap(([, name, block = '']) =>
    name === language ? [block] : [],
  );
}

/** What an operator puts in place of words of a page. */
export type OwnWords = Readonly<Record<string, string>>;

export const fillIn = (block: string, values: OwnWords) =>
  Object.entries(values).reduce((text, [words, own]) => text.replaceAll(words, own), block);

export type RunbookHost = Awaited<ReturnType<typeof openRunbookHost>>;

/**
 * A machine as docs/runbooks has it, in a folder: /etc/payouts, /var/lib and /backup lie there, `payouts` is the built
 * program with the settings of /etc/payouts/payouts.env, and `systemctl` starts and ends real processes.
 */
export async function openRunbookHost(gatewayUrl: string, secretKey: string) {
  const folder = await makeFolder('runbook');
  const { dir: root } = folder;
  const [redisPort, newRedisPort] = [await findFreePort(), await findFreePort()];
  const path = (file: string) => join(root, file);
  const urlOf = (port: number) => `redis://:${REDIS_PASSWORD}@127.0.0.1:${port}`;

  /** Paths and names of the page, as they are here. */
  function translate(script: string) {
    return script
      .replace(/ -o \w+ -g \w+|ssh redis-old.example /g, '')
      .replaceAll('-h redis-old.example', `-p ${redisPort}`)
      .replaceAll('-h redis-new.example', `-p ${newRedisPort}`)
      .replaceAll('redis-old.example 6379', `127.0.0.1 ${redisPort}`)
      .replaceAll('redis-old.example', `127.0.0.1:${redisPort}`)
      .replaceAll('redis-new.example', `127.0.0.1:${newRedisPort}`)
      .replace(/(?<![\w.-])\/(etc|var\/lib|backup|usr\/local)\b/g, `${root}/$1`);
  }

  function start(script: string) {
    return startProgram('bash', ['--norc', '-euo', 'pipefail', '-c', translate(script)], {
      cwd: root,
      env: {
        PATH: `${path('bin')}:${path('usr/local/sbin')}:${process.env['PATH'] ?? ''}`,
        HOME: root,
        // The tests also run on an older Node, of which each command would say so.
        NODE_NO_WARNINGS: '1',
        REDISCLI_AUTH: REDIS_PASSWORD,
        PAYOUTS_ENV: path('etc/payouts/payouts.env'),
      },
    });
  }

  async function shell(script: string) {
    const { code, stdout, stderr } = await start(script).result;
    return { code, output: stdout + stderr };
  }

  /** Runs a block, which ends well. @returns what it printed */
  async function run(block: string, values: OwnWords = {}) {
    const { code, output } = await shell(fillIn(block, values));
    if (code !== 0) throw new Error(`This block ended with ${String(code)}:\n${block}\n${output}`);
    return output;
  }

  async function writeProgram(name: string, script: string) {
    await writeFile(path(`bin/${name}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }

  for (const each of FOLDERS) await mkdir(path(each), { recursive: true, mode: 0o700 });
  await writeFile(path('etc/payouts/secrets/redis-url'), urlOf(redisPort), { mode: 0o600 });
  await writeFile(path('etc/payouts/secrets/gateway-secret-key'), secretKey, { mode: 0o600 });
  await writeFile(
    path('etc/payouts/payouts.env'),
    `REDIS_URL_FILE=${path('etc/payouts/secrets/redis-url')}
SEND_JOURNAL_DIR=${path('var/lib/payouts/journal')}
GATEWAY_PLATFORM_ID=4242
GATEWAY_BASE_URL=${gatewayUrl}
GATEWAY_SECRET_KEY_FILE=${path('etc/payouts/secrets/gateway-secret-key')}
${QUICK}`,
  );
  const conf = path('etc/redis/redis.conf');
  await writeFile(conf, redisConf(path('var/lib/redis'), redisPort));
  const payouts = `exec ${process.execPath} ${findBuiltProgram()} "$@"`;
  await writeProgram('payouts', `set -a; . ${path('etc/payouts/payouts.env')}; set +a\n${payouts}`);
  await writeProgram('redis-cli', `PATH=\${PATH#*:}; exec redis-cli -p ${redisPort} "$@"`);
  for (const each of ['npm', 'systemd-sysusers']) await writeProgram(each, 'exit 0');
  await writeProgram('runuser', 'shift 3; exec "$@"');
  await writeProgram('systemctl', systemctl(path('run'), conf));
  await shell('systemctl start redis-server');
  await until('Redis responds', async () => (await shell('redis-cli PING')).output.includes('PONG'));

  return {
    ...{
      path,
      shell,
      start,
      run,
      writeProgram,
      redisPort,
      redisUrl: urlOf(redisPort),
      newRedisUrl: urlOf(newRedisPort),
    },
    /** Adds lines to /etc/payouts/payouts.env; the later of two counts. */
    addSettings: async (...lines: readonly string[]) =>
      appendFile(path('etc/payouts/payouts.env'), lines.map((line) => `${translate(line)}\n`).join('')),
    readWorkerLog: async () => readFile(path('run/payouts-worker.log'), 'utf8'),
    async startNewRedis() {
      const dir = path('var/lib/redis-new');
      await mkdir(dir);
      await writeFile(join(dir, 'conf'), redisConf(dir, newRedisPort));
      await shell('redis-server /var/lib/redis-new/conf --daemonize yes --logfile /var/lib/redis-new/log');
    },
    async close() {
      await shell('systemctl stop payouts-worker');
      for (const port of [redisPort, newRedisPort]) await shell(`redis-cli -p ${port} SHUTDOWN NOSAVE || true`);
      await folder.close();
    },
  };
}

const systemctl = (run: string, conf: string) => `unit=$2; pidfile=${run}/$unit.pid
runs() { [ -d /proc/$1 ] && ! grep -q '^State:.Z' /proc/$1/status; }
stop() {
  [ -f $pidfile ] || return 0
  pid=$(cat $pidfile); kill $pid || true
  while runs $pid; do sleep 0.1; done
  rm $pidfile
}
start() {
  case $unit in
  payouts-worker) set -- payouts worker ;;
  redis-server) set -- redis-server ${conf} ;;
  *) exit 0 ;;
  esac
  setsid "$@" >> ${run}/$unit.log 2>&1 < /dev/null &
  echo $! > $pidfile
}
case $1 in
stop) stop ;;
start) start ;;
restart) stop; start ;;
disable) unit=$3; pidfile=${run}/$unit.pid; stop ;;
enable) unit=$3; pidfile=${run}/$unit.pid; start ;;
try-restart) ;;
esac`;

const [SETTINGS_OF_REDIS = ''] =
  /(?<=^```\n).*?(?=^```$)/ms.exec(readFileSync(new URL('../../../docs/redis.md', import.meta.url), 'utf8')) ?? [];

/** With the settings that docs/redis.md asks for, and a password. */
const redisConf = (folder: string, port: number) => `${SETTINGS_OF_REDIS}
dir ${folder}
port ${port}
requirepass ${REDIS_PASSWORD}
save ""
`;
