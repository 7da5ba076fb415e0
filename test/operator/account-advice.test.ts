import { describe, expect, it } from '@jest/globals';
import type { KnownJournal, Objection } from '../../src/ledger/sender-ledger.js';
import { adoptCommand, adviseAccount, foldersOf } from '../../src/operator/account-advice.js';

type Stats = Parameters<typeof adviseAccount>[0];

const DIR = '/var/lib/payouts';

function journal(journalId: string, host: string, dir = `/mnt/${host}`): KnownJournal {
  return { journalId, host, dir, sends: 0, token: '', at: 0 };
}

function objection(journalId: string, host: string, given: Partial<Objection> = {}): Objection {
  return { journalId, kind: 'ledger', reason: 'older.', host, dir: `/mnt/${host}`, sends: 0, at: 0, ...given };
}

const advise = (given: Partial<Stats>) =>
  adviseAccount({ platformId: 42, objections: [], journals: [], paused: false, pausedReason: null, ...given });

describe('adviseAccount', () => {
  it('says nothing of an account that nothing stops', () => {
    expect(advise({ journals: [journal('j-a', 'a')] })).toEqual([]);
  });

  it('says how a pause is ended', () => {
    expect(advise({ paused: true, pausedReason: 'blocked by the gateway' })).toEqual([
      {
        kind: 'pause',
        problem: 'paused: blocked by the gateway',
        first: 'Remove the cause first.',
        command: 'payouts resume --account 42 --reason WHY',
      },
    ]);
  });

  it('speaks of an objection before a pause, and only of it', () => {
    const stops = advise({ objections: [objection('j-a', 'a')], paused: true, pausedReason: 'blocked' });
    expect(stops).toMatchObject([{ kind: 'objection', problem: 'send journal j-a on a: older.' }]);
    expect(JSON.stringify(stops)).not.toContain('resume');
  });

  it('names every objection, and the host where it is known', () => {
    const objections = [objection('j-a', 'a'), objection('unnamed', '', { dir: '', reason: 'no reason was noted' })];
    expect(advise({ objections })[0]?.problem).toBe(
      'send journal j-a on a: older. send journal unnamed: no reason was noted',
    );
  });

  it.each<[string, Partial<Stats>, string]>([
    ['the folder of the one journal', { objections: [objection('j-a', 'a')] }, '--journal /mnt/a'],
    [
      'the folders of all that are known, objecting or not',
      { objections: [objection('j-b', 'b')], journals: [journal('j-a', 'a'), journal('j-b', 'b')] },
      '--journal /mnt/a --journal /mnt/b',
    ],
    [
      'one folder once that a host has for two journals',
      { objections: [objection('j-a', 'a')], journals: [journal('j-old', 'a')] },
      '--journal /mnt/a',
    ],
    [
      'copies of a folder that two hosts have',
      { objections: [objection('j-a', 'a', { dir: DIR })], journals: [journal('j-b', 'b', DIR), journal('j-c', 'c')] },
      `--journal COPY-FROM-b:${DIR} --journal /mnt/c --journal COPY-FROM-a:${DIR}`,
    ],
    [
      'a folder in quotes where a shell needs them',
      { objections: [objection('j-a', 'a', { dir: "/mnt/it's here" })] },
      "--journal '/mnt/it'\\''s here'",
    ],
    [
      'to give up a journal whose place is not known',
      { objections: [objection('j-a', 'a')], journals: [journal('j-b', '', '')] },
      '--journal /mnt/a --give-up j-b',
    ],
    [
      'to give up a damaged journal beside a ledger that forgot sends',
      { objections: [objection('j-a', 'a'), objection('j-b', 'b', { kind: 'journal' })] },
      '--journal /mnt/a --give-up j-b',
    ],
    [
      'no folder for an objection of format 1, which names none',
      { objections: [objection('unnamed', '', { dir: '' })] },
      '',
    ],
  ])('names, where the ledger forgot sends, %s', (_, given, words) => {
    const [advice] = advise(given);
    expect(advice?.command).toBe(`payouts adopt-ledger --account 42 ${words === '' ? '' : `${words} `}--reason WHY`);
    expect(advice?.first).toMatch(
      /^Restore the newest copy of the Redis data.*enqueue again.*replace its --journal DIR with --give-up ID/,
    );
  });

  const DAMAGED = { kind: 'journal', reason: 'it was cut off.' } as const;
  it.each<[string, Partial<Stats>, string, string]>([
    [
      'alone, also where other journals are known',
      { objections: [objection('j-a', 'a', DAMAGED)], journals: [journal('j-b', 'b')] },
      '--journal /mnt/a',
      '--give-up j-a',
    ],
    [
      'with each other, where the folders have one path',
      {
        objections: [objection('j-a', 'a', { ...DAMAGED, dir: DIR }), objection('j-b', 'b', { ...DAMAGED, dir: DIR })],
      },
      `--journal COPY-FROM-a:${DIR} --journal COPY-FROM-b:${DIR}`,
      '--give-up j-a --give-up j-b',
    ],
  ])('has a damaged journal put back, else given up, %s', (_, given, putBack, giveUp) => {
    expect(advise(given)).toMatchObject([
      {
        first: `Restore the journal file as it was, if you can, and run \`payouts adopt-ledger --account 42 ${putBack} --reason WHY\`. Otherwise:`,
        command: `payouts adopt-ledger --account 42 ${giveUp} --reason WHY`,
      },
    ]);
  });

  it('has no folder read for a damaged journal whose place is not known', () => {
    const [advice] = advise({ objections: [objection('j-a', '', { ...DAMAGED, dir: '' })] });
    expect(advice?.first).toContain('`payouts adopt-ledger --account 42 --reason WHY`');
  });
});

describe('the command for more journals', () => {
  it('names a copy of a folder that is read already as that of another host', () => {
    const journals = [journal('j-b', 'b', DIR), journal('j-c', 'c')];
    expect(foldersOf(journals, [DIR])).toEqual([`COPY-FROM-b:${DIR}`, '/mnt/c']);
  });

  it('gives up each id once', () => {
    expect(adoptCommand(42, [], ['j-a', 'j-a'])).toBe('payouts adopt-ledger --account 42 --give-up j-a --reason WHY');
  });
});
