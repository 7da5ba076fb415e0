import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConflictError, NotFoundError } from '../../src/base/errors.js';
import { FileSendJournal } from '../../src/journal/file-send-journal.js';
import { readSenderView } from '../../src/ledger/sender-view.js';
import type { AdoptionPlan } from '../../src/operator/adoption.js';
import { aPayout } from '../ledger/support/a-payout.js';
import { ANN, openOperatorRig, type OperatorRig } from './support/operator-rig.js';
import { sendOf } from './support/adoption-world.js';

let rig: OperatorRig;
let dir: string;

beforeEach(async () => {
  rig = await openOperatorRig();
  dir = await mkdtemp(join(tmpdir(), 'payouts-operator-'));
});

afterEach(async () => {
  await rig.close();
  await rm(dir, { recursive: true });
});

/** A journal of another ledger, with sends of these numbers. */
async function journalOf(...numbers: readonly number[]): Promise<void> {
  const { platformId } = rig.account.connection;
  const journal = await FileSendJournal.open({ dir, platformId });
  const before = (numbers[0] ?? 1) - 1;
  await journal.bind({ ledgerId: 'former', epoch: 1, sends: before, token: before === 0 ? '' : `t-${before}` });
  for (const number of numbers) await journal.append(sendOf(`p-${number}`, number));
  await journal.close();
}

describe('adoptLedger', () => {
  it('brings back what the journals have, shows its plan first, and then has nothing to do', async () => {
    await journalOf(1, 2);
    const plans: AdoptionPlan[] = [];
    const review = (plan: AdoptionPlan): void => void plans.push(plan);
    const { plan, adoption } = await rig.operator.adoptLedger({ journalDirs: [dir], review }, ANN);
    expect(plans).toEqual([plan]);
    expect(plan).toMatchObject({ forgotten: 2, unread: [], unwitnessed: [] });
    expect(adoption).toMatchObject({
      adopted: [
        { payoutId: 'p-1', state: 'unknown' },
        { payoutId: 'p-2', state: 'unknown' },
      ],
      objections: 0,
    });
    expect((await rig.account.ledger.get('p-1'))?.history.at(-1)).toMatchObject({ by: 'ann' });
    expect(await rig.operator.adoptLedger({ journalDirs: [dir], review }, ANN)).toMatchObject({ adoption: undefined });
    expect(plans).toHaveLength(1);
  });

  it('refuses where Redis came back older once more after the plan was shown', async () => {
    await journalOf(1);
    const { redis, keys } = rig.account.connection;
    await rig.account.ledger.enqueue([aPayout('open')]);
    const review = async (plan: AdoptionPlan): Promise<void> => {
      expect(plan).toMatchObject({ holdsSendable: true, sendable: 1 });
      await redis.xdel(keys.events, plan.bookmark);
    };
    const refused = rig.operator.adoptLedger({ journalDirs: [dir], giveUp: ['unwitnessed'], review }, ANN);
    await expect(refused).rejects.toThrow(ConflictError);
    expect((await readSenderView(rig.account.connection)).objections.length).toBeGreaterThan(0);
  });

  it('refuses where sends are missing, until they are given up', async () => {
    await journalOf(3);
    const refused = rig.operator.adoptLedger({ journalDirs: [dir] }, ANN);
    await expect(refused).rejects.toThrow(ConflictError);
    await expect(refused).rejects.toThrow(/no journal has the sends number 1 to 2\. Name the journals .* journalDirs/);
    expect(await rig.account.ledger.get('p-3')).toBeUndefined();
    const { adoption } = await rig.operator.adoptLedger({ journalDirs: [dir], giveUp: ['unwitnessed'] }, ANN);
    expect(adoption).toMatchObject({ adopted: [{ payoutId: 'p-3', state: 'unknown' }] });
  });

  it('refuses a journal that it does not know, and a folder without one or that cannot be read', async () => {
    const adopt = async (folder: string, ...giveUp: string[]) =>
      rig.operator.adoptLedger({ journalDirs: [folder], giveUp }, ANN);
    await expect(adopt(dir)).rejects.toThrow(NotFoundError);
    await writeFile(join(dir, 'a-file'), '');
    await expect(adopt(join(dir, 'a-file'))).rejects.toMatchObject({ problems: [{ field: 'journalDirs' }] });
    await journalOf(1);
    await expect(adopt(dir, 'j-nobody')).rejects.toThrow(/^giveUp: must be the id of a journal .* \(got "j-nobody"\)$/);
  });
});
