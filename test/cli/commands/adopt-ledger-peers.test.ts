import { readdir } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { useCli } from '../support/cli-rig.js';

const cli = useCli();
const [THIS, OTHER] = ['aaaaaaaaaaaa', 'bbbbbbbbbbbb'];

/** One of the journal's files, with the send of this number. `suffix`: those that were set aside have one. */
async function writeFileOf(suffix: string, sends: number, ...lines: readonly JournalLine[]): Promise<void> {
  const before = { sends: sends - 1, token: sends === 1 ? '' : `t-${sends - 1}` };
  const request = { paymentId: 6, amount: '12.5', addressTo: 'TXYZ9' };
  const send = { payoutId: `p-${sends}`, attempt: 1, token: `t-${sends}`, epoch: 1, sends, after: before, at: 0 };
  const head: readonly JournalLine[] = [
    { v: 2, journalId: THIS },
    { ledgerId: 'former', epoch: 1, ...before },
  ];
  const all = [...head, ...lines, { ...send, request }].map((line) => JSON.stringify(line));
  await cli.file(`${cli.platformId}.journal${suffix}`, ...all);
}

it('payouts adopt-ledger asks for a journal that only the oldest file names', async () => {
  await writeFileOf('', 1);
  const command = ['adopt-ledger', '--journal', cli.dir, '--yes', '--reason', 'flushed', '--by', 'ann'];
  // Nobody knows that one yet.
  expect(await cli.run(...command, '--give-up', OTHER)).toMatchObject({ code: 2 });
  await writeFileOf('.1', 1, { peers: [{ journalId: OTHER, host: 'host-b', dir: '/b' }] });
  await writeFileOf('.2', 2);
  await writeFileOf('', 3);
  const refused = await cli.run(...command);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(new RegExp(`journal ${OTHER} was not read.*--give-up its id`));
  expect(await cli.states('p-1')).toEqual([undefined]);
  const asking = await cli.run(...command.filter((arg) => arg !== '--yes'), '--give-up', OTHER);
  expect(asking).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/p-1[^]*--yes: is required/) });
  expect(await cli.states('p-1')).toEqual([undefined]);
  expect(await cli.run(...command, '--give-up', OTHER)).toMatchObject({ code: 0 });
  expect(await cli.states('p-1', 'p-2', 'p-3')).toEqual(['unknown', 'unknown', 'unknown']);
});

it('payouts adopt-ledger says that it is run in the wrong place where there is no journal', async () => {
  cli.env['SEND_JOURNAL_DIR'] = cli.dir;
  await cli.refused(3, /No send journal of account \d+ in .*payouts-cli/, 'adopt-ledger', '--yes');
  expect(await readdir(cli.dir)).toEqual([]);
});
