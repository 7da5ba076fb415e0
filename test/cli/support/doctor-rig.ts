import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import { Redis } from 'ioredis';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { createPayoutWorker, type PayoutWorker } from '../../../src/control/payout-worker.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { startLocalRedis, type LocalRedis } from '../../../src/sandbox/local-redis.js';
import { startSandbox, type Sandbox } from '../../../src/sandbox/index.js';
import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { newPlatformId } from '../../support/account.js';
import { runInProcess } from './in-process.js';

/** `payouts doctor` in this process, with a Redis, a gateway and an account of its own. */
class DoctorRig {
  readonly platformId = newPlatformId();
  readonly prefix = `{payouts:${this.platformId}}`;
  readonly secretKey = 'k-doctor-9876543210';
  redis!: LocalRedis;
  client!: Redis;
  sandbox!: Sandbox;
  /** Empty before each test. */
  dir!: string;
  /** That of a worker for the account, before each test. */
  environment!: Record<string, string>;

  async run(...args: string[]) {
    const { code, stdout: out, stderr: err } = await runInProcess(['doctor', ...args], this.environment);
    return { code, out, err };
  }

  /** Runs it with a changed environment. @returns the exit code, and the checks that are not ok */
  async findings(changes: Record<string, string> = {}): Promise<{ code: number | null; found: CheckResult[] }> {
    Object.assign(this.environment, changes);
    const { code, out } = await this.run('--json');
    expect(out).not.toContain(this.secretKey);
    const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: CheckResult[] };
    expect(ok).toBe(code === 0);
    // How fast a busy test machine is decides about these.
    const isOfSpeed = ({ name, status }: CheckResult) =>
      status === 'warning' && (name === 'journal folder' || name === 'Redis latency');
    // Without a keyring every run warns of that.
    const isUnsigned = ({ name, status }: CheckResult) =>
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

export function useDoctor(): DoctorRig {
  const rig = new DoctorRig();
  beforeAll(async () => {
    const { platformId, secretKey } = rig;
    rig.redis = await startLocalRedis();
    rig.client = new Redis(rig.redis.url);
    rig.sandbox = await startSandbox({ accounts: [{ platformId, secretKey }] });
  });
  beforeEach(async () => {
    rig.dir = await mkdtemp(join(tmpdir(), 'payouts-doctor-'));
    rig.environment = {
      ...{ REDIS_URL: rig.redis.url, GATEWAY_PLATFORM_ID: String(rig.platformId), PAYOUT_AUDIENCE: TEST_AUDIENCE },
      ...{ GATEWAY_BASE_URL: rig.sandbox.url, GATEWAY_SECRET_KEY: rig.secretKey },
      SEND_JOURNAL_DIR: join(rig.dir, 'journal'),
    };
  });
  afterEach(async () => {
    await rig.client.flushdb();
    await rm(rig.dir, { recursive: true, force: true });
  });
  afterAll(async () => {
    await rig.sandbox.close();
    await rig.client.quit();
    await rig.redis.stop();
  });
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
