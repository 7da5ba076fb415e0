import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { connectLedger } from '../../../src/ledger/ledger-connection.js';
import { PayoutLedger } from '../../../src/ledger/payout-ledger.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { expectPromisesKept } from '../../worker/support/payout-world.js';
import { until } from '../../support/until.js';
import { openAdoption, type AdoptionRig } from '../support/adoption-rig.js';

let rig: AdoptionRig;

beforeEach(async () => {
  rig = await openAdoption();
});

afterEach(async () => rig.close());

async function untilCompleted(completed: number): Promise<void> {
  await until(`${completed} are completed`, async () => (await rig.world.producer.stats()).completed === completed);
  await expectPromisesKept(rig.world);
}

const paidIds = (): string[] => rig.paid().map(({ payoutId }) => payoutId);

describe('payouts adopt-ledger', () => {
  it('brings back what an older copy of Redis forgot; the running worker continues with the rest', async () => {
    const { world } = rig;
    await world.enqueue(6);
    await rig.sendSome(1);
    const copy = await rig.copyOfRedis();
    const known = paidIds();
    const worker = rig.startWorker();
    await rig.untilSent(known.length + 2);
    await rig.putBack(copy);
    const arrivals = await rig.untilRefused(worker, /older/);
    const forgotten = rig.paid().slice(known.length);

    const asked = await rig.adopt();
    expect(asked).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/--yes: is required/) });
    for (const { payoutId } of forgotten) expect(asked.stderr).toMatch(new RegExp(`${payoutId} +queued.* accepted `));
    await delay(2_000);
    expect(world.sandbox.stats().arrivals).toBe(arrivals);

    const adopted = await rig.adopt('--yes', '--by', 'ann', '--reason', 'backup restored', '--json');
    expect(adopted.code).toBe(0);
    expect(JSON.parse(adopted.stdout)).toMatchObject({
      // Which of the two is found first is a matter of time.
      mismatch: expect.stringMatching(/older|journal says that payout/),
      unknown: [],
      adopted: forgotten.map(({ payoutId }) => ({ payoutId, state: 'in_progress' })),
      held: 0,
    });
    const [first] = forgotten;
    const payout = await world.producer.get(first?.payoutId ?? '');
    expect(payout).toMatchObject({ txhash: first?.txhash });
    expect(payout?.history).toContainEqual(
      expect.objectContaining({
        from: 'queued',
        to: 'in_progress',
        by: 'ann',
        reason: expect.stringMatching(/forgot it: backup/),
      }),
    );
    await untilCompleted(6);
    expect(new Set(paidIds()).size).toBe(6);

    const journal = await rig.readJournal();
    expect(await rig.adopt()).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/nothing to adopt/) });
    expect(await rig.readJournal()).toBe(journal);
  }, 120_000);

  it('brings back what a flushed Redis forgot, so that enqueueing it again pays nothing twice', async () => {
    const { world } = rig;
    await world.enqueue(4);
    const worker = rig.startWorker();
    await rig.untilSent(2);
    await rig.redisClient.flushall();
    await world.enqueue(2, 'Q');
    await rig.untilRefused(worker, /flushed or exchanged/);
    const sent = rig.paid();

    const adopted = await rig.adopt('--yes');
    expect(adopted.code).toBe(0);
    expect(adopted.stdout).toMatch(/No payout became unknown/);
    for (const { payoutId } of sent) expect(adopted.stdout).toMatch(new RegExp(`\n  ${payoutId}\n`));
    expect(await world.producer.get('P-1')).toMatchObject({ amount: '0.01', paymentId: 1, txhash: sent[0]?.txhash });
    await world.enqueue(4);
    await untilCompleted(6);
  }, 120_000);

  it('continues where it was interrupted before it wrote to the journal', async () => {
    const { world } = rig;
    await world.enqueue(2);
    await rig.sendSome(2);
    await rig.redisClient.flushall();
    const journal = await rig.readJournal();
    expect((await rig.adopt('--yes')).code).toBe(0);
    await writeFile(rig.journalFile(), journal);

    const worker = rig.startWorker();
    await world.enqueue(3);
    await untilCompleted(3);
    expect(worker.log()).not.toMatch(/nothing is sent/);
    expect(await rig.adopt()).toMatchObject({ code: 0, stdout: expect.stringMatching(/nothing to adopt/) });
  }, 120_000);

  it("lifts a worker's objection that came to Redis when the ledger had just been adopted", async () => {
    const { world, redisClient } = rig;
    await world.enqueue(1);
    const worker = rig.startWorker();
    await untilCompleted(1);
    const connection = connectLedger(redisClient, world.platformId);
    const sender = new RedisSenderLedger(connection, 'reply');
    const [journal] = (await sender.readSender()).journals;
    if (journal === undefined) throw new Error('the ledger knows no journal');
    await sender.object({ ...journal, kind: 'ledger', reason: 'an older copy, as it was a moment ago' });
    await world.enqueue(1, 'Q');
    await delay(2_000);
    expect(await world.producer.stats()).toMatchObject({ queued: 1 });

    const adopted = await rig.adopt('--yes', '--json');
    expect(JSON.parse(adopted.stdout)).toMatchObject({
      mismatch: 'an older copy, as it was a moment ago',
      adopted: [],
      objections: 0,
    });
    await untilCompleted(2);
    expect(worker.log()).not.toMatch(/nothing is sent/);

    const ledger = new PayoutLedger(connection);
    await ledger.pause('ann', 'holidays');
    expect(await rig.adopt('--yes')).toMatchObject({ code: 0, stdout: expect.stringMatching(/nothing to adopt/) });
    expect(await world.producer.stats()).toMatchObject({ pausedBy: 'ann' });
  }, 120_000);

  it('says that it is run in the wrong place where there is no journal, and makes none', async () => {
    const result = await rig.adopt('--yes');
    expect(result).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/No send journal of account \d+ in .*journal/),
    });
    await expect(rig.readJournal()).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
