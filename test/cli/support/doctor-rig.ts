import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { Redis } from 'ioredis';
import { defineDoctorCommand } from '../../../src/cli/commands/doctor-command.js';
import { createOutput, type CliContext } from '../../../src/cli/context/cli-context.js';
import { runProgram } from '../../../src/cli/context/run-program.js';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { silentLogger } from '../../../src/base/logger.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';

export interface DoctorRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** `payouts doctor` in this process, with a Redis, a gateway and an account of its own. */
export class DoctorRig {
  readonly platformId = 100_000 + Math.floor(Math.random() * 1_000_000_000);
  readonly prefix = `{payouts:${this.platformId}}`;
  readonly secretKey = 'k-doctor-9876543210';
  redis!: LocalRedis;
  client!: Redis;
  sandbox!: Sandbox;
  /** Empty before each test. */
  dir!: string;
  /** That of a worker for the account, before each test. */
  environment!: Record<string, string>;

  async start(): Promise<void> {
    this.redis = await startLocalRedis();
    this.client = new Redis(this.redis.url);
    this.sandbox = await startSandbox({ accounts: [{ platformId: this.platformId, secretKey: this.secretKey }] });
  }

  async stop(): Promise<void> {
    await this.sandbox.close();
    await this.client.quit();
    await this.redis.stop();
  }

  async reset(): Promise<void> {
    this.dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-'));
    this.environment = {
      REDIS_URL: this.redis.url,
      GATEWAY_PLATFORM_ID: String(this.platformId),
      GATEWAY_BASE_URL: this.sandbox.url,
      PAYOUT_AUDIENCE: TEST_AUDIENCE,
      GATEWAY_SECRET_KEY: this.secretKey,
      SEND_JOURNAL_DIR: join(this.dir, 'journal'),
    };
  }

  async clean(): Promise<void> {
    const keys = await this.client.keys(`${this.prefix}*`);
    if (keys.length > 0) await this.client.del(keys);
    await rm(this.dir, { recursive: true, force: true });
  }

  async run(...args: string[]): Promise<DoctorRun> {
    let out = '';
    let err = '';
    const context: CliContext = {
      environment: this.environment,
      ...createOutput({
        writeOut: (text) => void (out += text),
        writeErr: (text) => void (err += text),
        isTerminal: false,
        isColoured: false,
      }),
      logger: silentLogger,
      terminal: { input: process.stdin, output: process.stderr },
      stopSignal: () => new AbortController().signal,
    };
    const entry = {
      usage: 'doctor',
      description: '',
      accounts: 'all' as const,
      load: () => Promise.resolve(defineDoctorCommand),
    };
    const groups = [{ heading: 'Tools:', commands: [entry] }];
    const code = await runProgram(groups, ['doctor', ...args], context);
    return { code, out, err };
  }

  /** Runs it with a changed environment. @returns the exit code, and the checks that are not ok */
  async findings(changes: Record<string, string> = {}): Promise<{ code: number; found: CheckResult[] }> {
    Object.assign(this.environment, changes);
    const { code, out } = await this.run('--json');
    expect(out).not.toContain(this.secretKey);
    const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: CheckResult[] };
    expect(ok).toBe(code === 0);
    // How fast a busy test machine is decides about these; doctor-checks.test.ts has them with a clock of its own.
    const isOfSpeed = ({ name, status }: CheckResult): boolean =>
      status === 'warning' && (name === 'journal folder' || name === 'Redis latency');
    // Without a keyring every run warns of that; doctor-keys.test.ts has it.
    const isUnsigned = ({ name, status }: CheckResult): boolean =>
      status === 'warning' && name === 'keys' && !this.environment['PAYOUT_KEYS_FILE'];
    const found = checks.filter((check) => check.status !== 'ok' && !isOfSpeed(check) && !isUnsigned(check));
    for (const { fix } of found) expect(fix).toMatch(/^.{20,}$/);
    return { code, found };
  }
}

/** A rig for the tests of a file. */
export function useDoctor(): DoctorRig {
  const rig = new DoctorRig();
  beforeAll(async () => rig.start());
  beforeEach(async () => rig.reset());
  afterEach(async () => rig.clean());
  afterAll(async () => rig.stop());
  return rig;
}

/** The warning of every run beside which no worker runs. */
export const NO_SENDER = expect.objectContaining({ name: 'sender', status: 'warning' });

/** A problem of this check whose detail contains the text. */
export function problemOf(name: string, detail: string): unknown {
  return expect.objectContaining({ name, status: 'problem', detail: expect.stringContaining(detail) });
}
