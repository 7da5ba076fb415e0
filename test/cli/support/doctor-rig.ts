import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { Redis } from 'ioredis';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { createPayoutWorker, type PayoutWorker } from '../../../src/control/payout-worker.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { runInProcess } from './in-process.js';

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
    const { code, stdout: out, stderr: err } = await runInProcess(['doctor', ...args], this.environment);
    return { code: code ?? -1, out, err };
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
    // Without a keyring every run warns of that; doctor-findings.test.ts has it.
    const isUnsigned = ({ name, status }: CheckResult): boolean =>
      status === 'warning' && name === 'keys' && !this.environment['PAYOUT_KEYS_FILE'];
    const found = checks.filter((check) => check.status !== 'ok' && !isOfSpeed(check) && !isUnsigned(check));
    for (const { fix } of found) expect(fix).toMatch(/^.{20,}$/);
    return { code, found };
  }

  /** Expects that a run with a changed environment ends with this code and these findings. @returns them */
  async expectFindings(
    code: number,
    findings: readonly unknown[],
    changes?: Record<string, string>,
  ): Promise<CheckResult[]> {
    const result = await this.findings(changes);
    expect(result).toEqual({ code, found: findings });
    return result.found;
  }

  async startWorker(journalDir: string, quarantineMs = 0): Promise<PayoutWorker> {
    const { platformId, secretKey, redis, sandbox } = this;
    const account = { platformId, secretKey, baseUrl: sandbox.url, audience: TEST_AUDIENCE };
    return createPayoutWorker({
      ...{ redisUrl: redis.url, journalDir },
      accounts: [{ ...account, leaseMs: 1_000, quarantineMs }],
    });
  }

  openProducer(): PayoutProducer {
    return new PayoutProducer({ platformId: this.platformId, redisUrl: this.redis.url });
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

/** As {@link problemOf}, of a warning. @param fix - a part of its remedy */
export function warningOf(name: string, detail: string, fix = ''): unknown {
  const texts = { detail: expect.stringContaining(detail), fix: expect.stringContaining(fix) };
  return expect.objectContaining({ name, status: 'warning', ...texts });
}
