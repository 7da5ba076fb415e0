import { TEST_AUDIENCE } from '../../control/support/keys.js';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { createPayoutWorker } from '../../../src/control/payout-worker.js';
import { until } from '../../support/until.js';
import { useDoctor } from '../support/doctor-rig.js';

const doctor = useDoctor();

describe('payouts doctor', () => {
  it('prints a line for each check, and leaves Redis and the folder unchanged', async () => {
    const { code, out, err } = await doctor.run();
    expect([code, err]).toEqual([0, '']);
    const lines = out.split('\n').filter((line) => line !== '');
    expect(lines[0]).toBe(`Account ${doctor.platformId}: No worker`);
    expect(lines.filter((line) => line.startsWith('✓')).map((line) => line.slice(2, 27).trim())).toEqual([
      'Redis',
      'Redis writes',
      'Redis keeps its data',
      'Redis replicas',
      'Redis latency',
      'Redis memory',
      'system clock',
      'journal folder',
      'gateway connection',
      'gateway account',
      'gateway currencies',
      'audience',
      'journal and ledger',
      'withdraw queue',
      'transactionstatus queue',
      'withdraw jobs',
      'status jobs',
      'status polls',
      'outbox',
      'pause',
      'balance',
      'reconciliation',
      'unknown payouts',
    ]);
    expect(out).toContain('! sender                   no process sends for the account\n');
    expect(out).toContain(
      '! keys                     PAYOUT_KEYS_FILE is not set: anyone who can write to Redis can pay himself\n',
    );
    expect(out).toMatch(
      /\n {27}→ Start `payouts worker`\. Was nothing ever sent for this account.* `payouts new-account /,
    );
    expect(lines.at(-1)).toBe('No problems found; 2 warnings.');
    expect(await doctor.client.keys(`${doctor.prefix}*`)).toEqual([]);
    expect(await readdir(doctor.dir)).toEqual([]);
  });

  it('sees the heartbeat of the sender, and does not touch its journal', async () => {
    const journalDir = join(doctor.dir, 'journal');
    const worker = await createPayoutWorker({
      redisUrl: doctor.redis.url,
      journalDir,
      accounts: [
        {
          platformId: doctor.platformId,
          baseUrl: doctor.sandbox.url,
          audience: TEST_AUDIENCE,
          secretKey: doctor.secretKey,
          leaseMs: 1_000,
          quarantineMs: 1_000,
        },
      ],
    });
    try {
      await until('it is the sender', () => worker.accounts[0]?.status.role === 'sender');
      const journal = join(journalDir, `${doctor.platformId}.journal`);
      // A line that is being written: opening the journal would end it as a torn one.
      await writeFile(journal, '{"payoutId":', { flag: 'a' });
      const before = await readFile(journal, 'utf8');
      const { code, out } = await doctor.run();
      expect(out).toMatch(/✓ sender {19}\S+:\d+:\w+ \(epoch 1\), heartbeat received\n/);
      expect(out).toMatch(/✓ journal and ledger {7}they agree on 0 sends\n/);
      expect([code, out.trimEnd().split('\n').at(-1)]).toEqual([0, 'No problems found; 1 warning.']);
      expect(await readFile(journal, 'utf8')).toBe(before);
      expect(await readdir(journalDir)).toEqual([`${doctor.platformId}.journal`]);
    } finally {
      await worker.stop();
    }
  });

  it('warns of a variable that is probably misspelt, and does not show its value', async () => {
    const { code, found } = await doctor.findings({ WITHDRAW_INTERVALL_MS: '98765', WITHDRAWALS_URL: 'x' });
    expect(code).toBe(0);
    expect(found[0]).toEqual({
      name: 'environment',
      status: 'warning',
      detail: 'WITHDRAW_INTERVALL_MS is not known and has no effect',
      fix: 'Did you mean WITHDRAW_INTERVAL_MS?',
    });
    expect(JSON.stringify(found)).not.toMatch(/98765|WITHDRAWALS_URL/);
  });

  it('checks nothing without the environment of a worker', async () => {
    doctor.environment = { REDIS_URL: doctor.redis.url };
    const { code, out, err } = await doctor.run();
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain('GATEWAY_SECRET_KEY');
  });
});
