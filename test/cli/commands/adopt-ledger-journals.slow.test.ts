import { readdir, rm } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { expectPromisesKept } from '../../worker/support/payout-world.js';
import { until } from '../../support/until.js';
import { openAdoption, type AdoptionRig } from '../support/adoption-rig.js';

let rig: AdoptionRig;

beforeEach(async () => {
  rig = await openAdoption();
});

afterEach(async () => rig.close());

const paidIds = (): string[] => rig.paid().map(({ payoutId }) => payoutId);

async function untilCompleted(completed: number): Promise<void> {
  await until(`${completed} are completed`, async () => (await rig.world.producer.stats()).completed === completed);
  await expectPromisesKept(rig.world);
  expect(new Set(paidIds()).size).toBe(completed);
}

/** Those that Redis takes for queued although they were paid. */
async function paidButQueued(): Promise<string[]> {
  return (await rig.idsIn('queued')).filter((payoutId) => paidIds().includes(payoutId));
}

describe('payouts adopt-ledger, where the journal has begun a new file twice since the backup', () => {
  it('leaves nothing queued that was paid', async () => {
    await rig.world.enqueue(9);
    await rig.sendSome(1);
    const backup = await rig.copyOfRedis();
    const known = paidIds().length;
    await rig.sendSome(1);
    await rig.fillJournal();
    await rig.sendSome(1);
    await rig.fillJournal();
    await rig.sendSome(2);
    const name = `${rig.world.platformId}.journal`;
    expect((await readdir(rig.journalDir())).sort()).toEqual([name, `${name}.1`, `${name}.2`]);
    await rig.putBack(backup);
    const worker = rig.startWorker();
    const arrivals = await rig.untilRefused(worker, /older copy of the ledger/);
    const forgotten = paidIds().slice(known);
    expect((await paidButQueued()).length).toBe(forgotten.length);

    const adopted = await rig.adopt('--yes', '--reason', 'disk failure', '--json');
    expect(JSON.parse(adopted.stdout)).toMatchObject({
      unknown: [],
      adopted: forgotten.map((payoutId) => ({ payoutId, state: 'in_progress' })),
    });
    expect(await paidButQueued()).toEqual([]);
    expect(arrivals).toBe(known + forgotten.length);
    await untilCompleted(9);
  }, 180_000);
});

describe('payouts adopt-ledger, where two hosts took turns', () => {
  const [HOST_A, HOST_B] = ['host-a', 'host-b'];

  /** Redis comes back as it was before host B had its turn, and then host A. @returns what it forgot */
  async function takeTurns(): Promise<{ ofA: string[]; ofB: string[]; known: number }> {
    await rig.world.enqueue(9);
    await rig.sendSome(1, HOST_A);
    const backup = await rig.copyOfRedis();
    const known = paidIds().length;
    await rig.sendSome(2, HOST_B);
    const toB = paidIds().length;
    await rig.sendSome(1, HOST_A);
    await rig.putBack(backup);
    return { known, ofB: paidIds().slice(known, toB), ofA: paidIds().slice(toB) };
  }

  async function expectStopped(arrivals: number): Promise<void> {
    await delay(4_000);
    expect(rig.world.sandbox.stats().arrivals).toBe(arrivals);
  }

  const inProgress = (payoutIds: readonly string[]): unknown =>
    payoutIds.map((payoutId) => ({ payoutId, state: 'in_progress' }));

  it('names what one journal alone does not have, and adopts with both', async () => {
    const { ofA, ofB, known } = await takeTurns();
    const workers = [rig.startWorker(HOST_A), rig.startWorker(HOST_B)];
    const journals = [HOST_A, HOST_B].flatMap((host) => ['--journal', rig.journalDir(host)]);
    for (const worker of workers) await rig.untilRefused(worker, /older copy of the ledger/);

    const alone = await rig.adopt('--journal', rig.journalDir(HOST_A), '--yes');
    expect(alone).toMatchObject({ code: 4, stdout: '' });
    expect(alone.stderr).toContain(`no journal has ${numbers(known + 1, known + ofB.length)}`);
    expect(alone.stderr).toContain(
      `payouts adopt-ledger --account ${rig.world.platformId} ${journals.join(' ')} --reason WHY`,
    );
    await expectStopped(known + ofB.length + ofA.length);

    const both = await rig.adopt(...journals, '--yes', '--json', '--reason', 'disk failure');
    expect(JSON.parse(both.stdout)).toMatchObject({ unknown: [], held: 0, adopted: inProgress([...ofA, ...ofB]) });
    expect(await paidButQueued()).toEqual([]);
    await untilCompleted(9);
  }, 180_000);

  it('makes what is queued unknown where a journal is given up', async () => {
    const { ofA, ofB, known } = await takeTurns();
    await rm(rig.journalDir(HOST_B), { recursive: true });
    const worker = rig.startWorker(HOST_A);
    const arrivals = await rig.untilRefused(worker, /older copy of the ledger/);
    const alone = ['--journal', rig.journalDir(HOST_A), '--yes', '--json', '--reason', 'host B burnt down'];
    const { stderr } = await rig.adopt(...alone);
    const [, lost = ''] = /journal (\w+) was not read/.exec(stderr) ?? [];

    const stillLacking = await rig.adopt(...alone, '--give-up', lost);
    expect(stillLacking).toMatchObject({ code: 4, stderr: expect.stringMatching(/--give-up unwitnessed/) });
    await expectStopped(arrivals);

    const adopted = await rig.adopt(...alone, '--give-up', lost, 'unwitnessed');
    const left = 9 - known - ofA.length;
    expect(JSON.parse(adopted.stdout)).toMatchObject({ adopted: inProgress(ofA), held: left });
    expect(await rig.idsIn('queued')).toEqual([]);
    const unknown = await rig.idsIn('unknown');
    expect(unknown.length).toBe(left);
    expect(unknown).toEqual(expect.arrayContaining(ofB));

    await resolveByTheBook(unknown);
    await untilCompleted(9);
  }, 180_000);
});

function numbers(first: number, last: number): string {
  return first === last ? `send number ${first}` : `the sends number ${first} to ${last}`;
}

/** The operator looks up in the gateway's book what was paid. */
async function resolveByTheBook(payoutIds: readonly string[]): Promise<void> {
  const txhashes = new Map(rig.paid().map(({ payoutId, txhash }) => [payoutId, txhash]));
  for (const payoutId of payoutIds) {
    const txhash = txhashes.get(payoutId);
    const decision = txhash === undefined ? ['--not-sent'] : ['--sent', '--txhash', txhash];
    await until(`${payoutId} is resolved`, async () => {
      const { code } = await rig.run('resolve', payoutId, ...decision, '--reason', 'looked it up');
      return code === 0;
    });
  }
}
