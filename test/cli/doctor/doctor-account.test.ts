import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { CheckResult } from '../../../src/cli/doctor/check-result.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import { NOTIFY_GROUP } from '../../../src/ledger/reads/state-events.js';
import { openAccount } from '../../../src/queues/open-account.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { NO_SENDER, problemOf, useDoctor } from '../support/doctor-rig.js';

const doctor = useDoctor();

describe('payouts doctor finds, in the account:', () => {
  it('a paused account', async () => {
    const account = openAccount({ platformId: doctor.platformId, redisUrl: doctor.redis.url });
    await account.ledger.pause('anna', 'gateway maintenance');
    await account.close();
    const { code, found } = await doctor.findings();
    expect([code, found]).toEqual([1, [NO_SENDER, problemOf('pause', 'gateway maintenance (by anna)')]]);
  });

  it('a sender without a heartbeat, and unknown payouts', async () => {
    await doctor.client.hset(`${doctor.prefix}:sender`, { owner: 'gone:1:abc', epoch: 4, beat: 17, released: 0 });
    await doctor.client.zadd(`${doctor.prefix}:state:unknown`, 1, 'P-1');
    await doctor.client.hset(`${doctor.prefix}:payout:P-1`, {
      state: 'unknown',
      n: 1,
      h0: `${Date.now() - 120_000}\tunknown`,
    });
    const { code, found } = await doctor.findings();
    expect([code, found]).toEqual([
      0,
      [
        expect.objectContaining({
          detail: expect.stringMatching(/^gone:1:abc \(epoch 4\) sent no heartbeat for \d\.\d s$/),
        }),
        expect.objectContaining({ detail: '1 may or may not have been sent, the oldest for 2 min' }),
      ],
    ]);
  });

  it('a worker that refuses to send, instead of telling to start one', async () => {
    const now = Date.now();
    const report = { role: 'refused', reason: 'Payouts wait that it cannot know.', at: now, startedAt: now };
    await doctor.client.hset(`${doctor.prefix}:workers`, 'host:1', JSON.stringify(report));
    const { code, found } = await doctor.findings();
    const problem = problemOf('sender', 'the worker host:1 refuses to send. Payouts wait that it cannot know.');
    expect([code, found]).toEqual([1, [problem]]);
    const stale = JSON.stringify({ ...report, at: now - 61_000 });
    await doctor.client.hset(`${doctor.prefix}:workers`, 'host:1', stale);
    expect((await doctor.findings()).found).toEqual([NO_SENDER]);
  });

  it('a sender that has vanished while payouts wait', async () => {
    await doctor.client.hset(`${doctor.prefix}:sender`, { owner: 'gone:1:abc', epoch: 4, beat: 17, released: 0 });
    const producer = new PayoutProducer({ platformId: doctor.platformId, redisUrl: doctor.redis.url });
    await producer.enqueue(aPayout('P-1'));
    await producer.close();
    const { code, found } = await doctor.findings();
    expect([code, found]).toEqual([1, [problemOf('sender', 'and 1 payout queued')]]);
  });

  it('more status polls than the rate allows', async () => {
    const due = Array.from({ length: 700 }, (_, index) => [index, `P-${index}~0`]).flat();
    const delayed = `${doctor.prefix}:transactionstatus:delayed`;
    await doctor.client.zadd(delayed, ...due.slice(0, 2 * 600));
    expect((await doctor.findings()).found).toEqual([NO_SENDER]);
    await doctor.client.zadd(delayed, ...due);
    const late = {
      name: 'status polls',
      status: 'warning',
      detail: '700 polls due, which take 1 min at STATUS_POLL_RATE=10',
    };
    expect((await doctor.findings()).found).toEqual([NO_SENDER, expect.objectContaining(late)]);
  });

  it('members of the outbox that it does not understand', async () => {
    await doctor.client.zadd(`${doctor.prefix}:outbox`, 1, 'refunding P-1', 2, 'queued', 3, 'queued P-2');
    const { code, found } = await doctor.findings();
    const strange = { name: 'outbox', status: 'warning', detail: '2 members that this version does not understand' };
    expect([code, found]).toEqual([0, [NO_SENDER, expect.objectContaining(strange)]]);
    expect(found[1]?.fix).toContain(`redis-cli ZRANGE '${doctor.prefix}:outbox' 0 -1`);
  });

  it('notifications that are late, once they were started', async () => {
    const readLine = async (): Promise<CheckResult | undefined> => {
      const { checks } = JSON.parse((await doctor.run('--json')).out) as { readonly checks: CheckResult[] };
      return checks.find(({ name }) => name === 'notifications');
    };
    const events = `${doctor.prefix}:events`;
    const [seconds = 0] = await doctor.client.time();
    await doctor.client.xadd(events, `${seconds - 3_600}000-0`, 'type', 'paused');
    expect(await readLine()).toBeUndefined();
    await doctor.client.xgroup('CREATE', events, NOTIFY_GROUP, '$');
    expect(await readLine()).toMatchObject({ status: 'ok', detail: 'all delivered' });
    await doctor.client.xgroup('SETID', events, NOTIFY_GROUP, '0');
    expect(await readLine()).toMatchObject({
      status: 'warning',
      detail: 'the oldest waits for 1 h 0 min',
      fix: expect.stringContaining('start it'),
    });
  });

  it('in every account of an accounts file', async () => {
    const file = join(doctor.dir, 'accounts.json');
    await writeFile(join(doctor.dir, 'right'), doctor.secretKey, { mode: 0o600 });
    await writeFile(join(doctor.dir, 'wrong'), 'another-key', { mode: 0o600 });
    const accounts = [
      { platformId: doctor.platformId, baseUrl: doctor.sandbox.url, secretKeyFile: 'right' },
      { platformId: doctor.platformId + 1, baseUrl: doctor.sandbox.url, secretKeyFile: 'wrong' },
    ];
    await writeFile(file, JSON.stringify(accounts));
    doctor.environment['PAYOUT_ACCOUNTS_FILE'] = file;
    const { code, out } = await doctor.run();
    expect(code).toBe(1);
    expect(out).toContain(`✓ gateway account          ${doctor.platformId}: platform id and secret key are right`);
    expect(out).toContain(`✗ gateway account          ${doctor.platformId + 1}: The gateway refused /balance`);
  });
});
