import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect } from '@jest/globals';
import { closeRedis, connectRedis, type RedisClient } from '../../../src/base/redis.js';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { newPlatformId, testRedisUrl } from '../../support/account.js';
import { startCli, type CliOptions, type CliResult, type RunningCli } from '../../support/cli.js';
import { until } from '../../support/until.js';
import { runInProcess } from './in-process.js';
import { type PayoutState, STATE_CODE } from '../../../src/ledger/states.js';

export const SECRET_KEY = 'k-cli-0123456789';

/** An account of the test's own, with a folder for its files, and `payouts` run for it. */
export class CliRig {
  platformId!: number;
  ledger!: PayoutLedger;
  redis!: RedisClient;
  keys!: PayoutLedger['connection']['keys'];
  /** Of every command. */
  env: Record<string, string> = {};
  dir!: string;
  sandbox: Sandbox | undefined;

  async open(withGateway = false): Promise<this> {
    this.dir = await mkdtemp(join(tmpdir(), 'payouts-cli-'));
    const platformId = (this.platformId = newPlatformId());
    this.redis = connectRedis(testRedisUrl(), 'commands');
    this.ledger = new PayoutLedger(connectLedger(this.redis, platformId));
    this.keys = this.ledger.connection.keys;
    this.env = { GATEWAY_PLATFORM_ID: String(platformId), PAYOUT_AUDIENCE: TEST_AUDIENCE };
    if (!withGateway) return this;
    this.sandbox = await startSandbox({ accounts: [{ platformId, secretKey: SECRET_KEY, balance: '1000.5' }] });
    Object.assign(this.env, { GATEWAY_BASE_URL: this.sandbox.url, GATEWAY_SECRET_KEY: SECRET_KEY });
    return this;
  }

  async close() {
    await closeRedis(this.redis);
    await this.sandbox?.close();
    await rm(this.dir, { recursive: true, force: true });
  }

  unset(...names: string[]) {
    for (const name of names) Reflect.deleteProperty(this.env, name);
  }

  /** In the test's own process. */
  async run(...args: string[]): Promise<CliResult> {
    return runInProcess(args, this.env);
  }

  start(args: readonly string[], options: CliOptions = {}): RunningCli {
    return startCli(args, { env: this.env, ...options });
  }

  /** Runs a command that succeeds, without a word on stderr. @returns stdout */
  async ok(...args: string[]) {
    const { code, stdout, stderr } = await this.run(...args);
    // On a busy machine a connection may take a second attempt, and no test of a command has a worker.
    const said = stderr.replace(/^payouts: (Redis unavailable, reconnecting|no worker has ever served).*\n/gm, '');
    expect({ code, stderr: said }).toEqual({ code: 0, stderr: '' });
    return stdout;
  }

  /** The lines of a command with `--json`, whatever it ends with. */
  async lines<T = Record<string, unknown>>(...args: string[]): Promise<T[]> {
    const { stdout } = await this.run(...args, '--json');
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T]));
  }

  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const lines = await this.lines<T>(...args);
    expect(lines).toHaveLength(1);
    return lines[0] as T;
  }

  /** Runs a command that prints nothing and ends with this code. @returns stderr */
  async refused(code: number, message: RegExp | string, ...args: string[]) {
    const result = await this.run(...args);
    expect(result).toMatchObject({ code, stdout: '', stderr: textWith(message) });
    return result.stderr;
  }

  /** Runs a command that asks its question at a terminal. */
  ask(...args: string[]) {
    const terminal = () => Object.assign(new PassThrough(), { isTTY: true });
    const [input, output] = [terminal(), terminal()];
    let asked = '';
    output.on('data', (text) => (asked += String(text)));
    return {
      result: runInProcess(args, this.env, undefined, { input, output }),
      /** What was asked until now. */
      asked: () => asked,
      untilAsked: async () => until('it asks', () => /\[y\/N\] |how many: /.test(asked)),
      answer: (text: string) => void input.write(`${text}\n`),
    };
  }

  async answered(answer: string, ...args: string[]): Promise<CliResult & { readonly asked: string }> {
    const command = this.ask(...args);
    command.answer(answer);
    return { ...(await command.result), asked: command.asked() };
  }

  async enqueue(payoutId: string, ...args: string[]): Promise<CliResult> {
    const payout = ['--payment-id', '6', '--amount', '12.5', '--address-to', 'TXYZ9'];
    return this.run('enqueue', '--payout-id', payoutId, ...payout, ...args);
  }

  /** Enqueues payouts, and puts them into a state as the worker would leave them. */
  async make(state: PayoutState, ...payoutIds: string[]) {
    for (const payoutId of payoutIds) {
      await this.enqueue(payoutId);
      await this.force(payoutId, state);
    }
  }

  async force(payoutId: string, state: PayoutState) {
    const { keys, redis } = this;
    const score = await redis.zscore(keys.state('queued'), payoutId);
    const { key, isStream } = keys.stateIndex(state);
    const pipeline = redis
      .pipeline()
      .hset(keys.payout(payoutId), { state, h0: `${STATE_CODE[state]}${Date.now().toString(36)}` })
      .zrem(keys.state('queued'), payoutId);
    if (isStream) pipeline.xadd(key, `${score ?? 1}-0`, 'payoutId', payoutId);
    else pipeline.zadd(key, score ?? 1, payoutId);
    await pipeline.exec();
  }

  /** The gateway lists 6 as USDT. */
  async listCurrency() {
    const currencies = [{ paymentId: 6, name: 'USDT (TRC-20)' }];
    await this.redis.hset(this.keys.gateway, 'currencies', JSON.stringify({ currencies }));
  }

  /** Writes fields of a payout's record past every rule. */
  async alter(payoutId: string, fields: Record<string, string | number>) {
    await this.redis.hset(this.keys.payout(payoutId), fields);
  }

  async states(...payoutIds: string[]): Promise<(string | undefined)[]> {
    return Promise.all(payoutIds.map(async (payoutId) => (await this.ledger.get(payoutId))?.state));
  }

  async lastChange(payoutId: string): Promise<unknown> {
    return (await this.ledger.get(payoutId))?.history.at(-1);
  }

  /** The jobs that wait in a queue, in all its structures. */
  async jobs(queue = 'withdraw') {
    const key = (structure: string) => `${this.keys.prefix}:${queue}:${structure}`;
    const found = [await this.redis.lrange(key('wait'), 0, -1)];
    for (const name of ['delayed', 'prioritized']) found.push(await this.redis.zrange(key(name), 0, '-1'));
    return found.flat();
  }

  async file(name: string, ...lines: readonly string[]) {
    const path = join(this.dir, name);
    await writeFile(path, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
    return path;
  }
}

/** Opened again for each test of a file. */
export function useCli(withGateway = false): CliRig {
  const rig = new CliRig();
  beforeEach(async () => {
    await rig.open(withGateway);
  });
  afterEach(async () => rig.close());
  return rig;
}

export function textWith(message: RegExp | string): unknown {
  return typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message);
}
