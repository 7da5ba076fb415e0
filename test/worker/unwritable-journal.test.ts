import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { newPlatformId, testRedisUrl } from '../support/account.js';
import { runCli } from '../support/cli.js';
import { until } from '../support/until.js';
import { endAllWorkers, startWorkerProcess, type WorkerProcess } from './support/worker-process.js';

/**
 * A worker without a journal keeps running: disks are mounted late, and are emptied. Its probe, the status and the
 * doctor say it meanwhile.
 */

let dir: string;
let platformId: number;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-unwritable-'));
  platformId = newPlatformId();
});
afterEach(async () => {
  await endAllWorkers();
  await rm(dir, { recursive: true, force: true });
});

function start(journalDir: string): WorkerProcess {
  const access = { redisUrl: testRedisUrl(), baseUrl: 'http://127.0.0.1:1', secretKey: 'k-none' };
  return startWorkerProcess({ ...access, platformId, journalDir });
}

async function readyz(worker: WorkerProcess): Promise<{ status: number; body: string }> {
  const url = /"url":"([^"]+)"/.exec(worker.log())?.[1];
  if (url === undefined) return { status: 0, body: '' };
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: await response.text() };
}

it.each([
  ['a path through a file', /ENOTDIR/, async () => writeFile(join(dir, 'disk'), '')],
  ['a read-only file system', /EPERM|EROFS|EACCES/, async () => symlink('/sys', join(dir, 'disk'))],
])(
  '%s: readyz is 503, status and doctor end with 1, and the worker goes on once it can write',
  async (_, code, block) => {
    await block();
    const journalDir = join(dir, 'disk', 'journal');
    const worker = start(journalDir);
    await until('the worker says it', async () => (await readyz(worker)).body.includes('Journal disk'), 30_000);
    const refused = await readyz(worker);
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.body)).toMatchObject({
      accounts: [{ headline: 'Journal disk', role: 'refused', cause: 'disk', reason: expect.stringMatching(code) }],
    });
    expect(worker.log()).toMatch(/"msg":"nothing is sent without the send journal"/);
    const access = { GATEWAY_BASE_URL: 'http://127.0.0.1:1', GATEWAY_SECRET_KEY: 'k-none' };
    const env = { ...access, GATEWAY_PLATFORM_ID: String(platformId), SEND_JOURNAL_DIR: journalDir };
    const status = await runCli(['status'], { env });
    expect(status).toMatchObject({ code: 1, stdout: expect.stringMatching(code) });
    expect(status.stdout).toContain('Journal disk');
    const doctor = await runCli(['doctor'], { env });
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toMatch(/✗ journal folder .*cannot be written/);

    await rm(join(dir, 'disk'));
    await until('it is ready', async () => (await readyz(worker)).status === 200, 30_000);
    worker.kill('SIGTERM');
    expect(await worker.ended).toBe(0);
  },
  120_000,
);

it('a system call that does not return: the worker says it, and SIGTERM ends it within 5 s', async () => {
  // Nothing ever opens the other end.
  execFileSync('mkfifo', [join(dir, `${platformId}.journal`)]);
  const worker = start(dir);
  await until('the worker says it', async () => (await readyz(worker)).body.includes('Journal disk'), 30_000);
  expect((await readyz(worker)).body).toMatch(/has not answered for \d+ s: nothing is sent until it does/);
  const killedAt = performance.now();
  worker.kill('SIGTERM');
  expect(['SIGTERM', 0]).toContain(await worker.ended);
  expect(performance.now() - killedAt).toBeLessThan(5_000);
  expect(worker.log()).toContain('worker stopped');
}, 90_000);
