import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { aSend, LEDGER, makeJournalFolder, type JournalFolder } from '../../journal/support/journal-folder.js';
import type { CliResult } from '../../support/cli.js';
import { textWith } from '../support/cli-rig.js';
import { runInProcess } from '../support/in-process.js';

/** Without Redis: the commands work where only the journal is. */

const [INTENT, ACT] = ['1a'.repeat(32), 'ac'.repeat(32)];
const AT = Date.parse('2030-01-31T10:00:00Z');
const DAY_MS = 86_400_000;
const SIGNED = { intent: INTENT, key: 'shop', issuedAt: AT - 1_000, expiresAt: AT + 1_000, act: ACT, clears: [1] };
const JUDGED = { policy: 'b'.repeat(64), usd: '12510000', approvals: ['c'.repeat(64), 'd'.repeat(64)] };

let folder: JournalFolder;
let journal: FileSendJournal;
beforeEach(async () => {
  folder = await makeJournalFolder();
  journal = await folder.open();
  await journal.bind(LEDGER);
  await journal.append(aSend('p', 1, { at: AT - DAY_MS }));
  journal.noteOutcome(aSend('p', 1), { kind: 'rejected', message: '=no' }, 5);
  await journal.append(aSend('q', 2, { at: AT, attempt: 2, signed: SIGNED, judged: JUDGED }));
  journal.noteOutcome(aSend('q', 2, { attempt: 2 }), { kind: 'accepted', txhash: 'h' }, 5);
  await journal.append(aSend('r', 3, { at: AT + DAY_MS }));
});
afterEach(async () => folder.close());

const audit = async (args: string, id = '1', more: readonly string[] = []): Promise<CliResult> => {
  const env = { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_PLATFORM_ID: id, SEND_JOURNAL_DIR: folder.dir };
  return runInProcess(['audit', ...args.split(' '), ...more], env);
};
const verify = async (args = ''): Promise<{ code: number | null; report: Record<string, unknown> }> => {
  const { code, stdout } = await audit(`verify --offline --json${args}`);
  return { code, report: JSON.parse(stdout) as Record<string, unknown> };
};
describe('payouts audit verify', () => {
  it('shows what the journal comes to, and its head, which must still be there', async () => {
    const head = String((await verify()).report['head']);
    expect((await audit('verify --offline')).stdout).toMatch(
      /^journal +[0-9a-f]{12}\nfiles +1\nlines +7\nsends +3\nbegins +\d.*\nhead +[0-9a-f]{64}\nchain +whole\nsignatures +1 signed send: not verified: PAYOUT_KEYS_FILE names no keyring; 2 unsigned\nledger +NOT COMPARED: left out \(--offline\)\nfindings +none\n$/,
    );
    expect(await verify(` --head ${head}`)).toMatchObject({ code: 0, report: { found: { line: 7 } } });
    await writeFile(folder.path(), `${(await folder.texts()).slice(0, -1).join('\n')}\n`);
    const cut = textWith(/\nhead given +not in this journal\nchain +whole\n/);
    expect(await audit(`verify --offline --head ${head}`)).toMatchObject({ code: 5, stdout: cut });
  });

  it('exits 5 and shows a line that was altered; 1 where Redis was not compared', async () => {
    const uncompared = { code: 1, stdout: textWith(/\nledger +NOT COMPARED: .*Redis/) };
    expect(await audit('verify')).toMatchObject(uncompared);
    expect(await audit('export')).toMatchObject({ code: 1, stdout: '', stderr: textWith(/Redis/) });
    await writeFile(folder.path(), (await folder.text()).replace('wallet-1', 'wallet-2'));
    const shown = textWith(/\nchain +1 fault\n.*1\.journal:4: a line that it follows/);
    expect(await audit('verify')).toMatchObject({ code: 5, stdout: shown });
  });

  it('exits 2 for a head that is none, 3 where there is no journal', async () => {
    const wrong = textWith(/--head: must be 64 hexadecimal digits.*got "ABC"/);
    expect(await audit('verify --head ABC')).toMatchObject({ code: 2, stdout: '', stderr: wrong });
    const missing = textWith(/No send journal of account 2 in .*\. Run the command on the worker's host/);
    for (const args of ['verify --offline', 'export --offline', 'upgrade-journal']) {
      expect(await audit(args, '2')).toMatchObject({ code: 3, stdout: '', stderr: missing });
    }
  });
});

it('payouts audit export prints every send with its outcome and who signed it', async () => {
  const { stdout } = await audit('export --offline --csv');
  expect(stdout.trimEnd().split('\n')).toEqual([
    'sent_at,payout_id,attempt,payment_id,amount,address_to,symbol,outcome,txhash,message,signer,intent,issued_at,expires_at,act,usd,policy,approvals,currency,fee,signer_person,approved_by,requested_by,answered_at,state,state_at,reference',
    "2030-01-30T10:00:00.000Z,p,1,7,12.5,wallet-1,,rejected,,'=no,,,,,,,,,,,,,,1970-01-01T00:00:00.005Z,,,",
    `2030-01-31T10:00:00.000Z,q,2,7,12.5,wallet-1,,accepted,h,,shop,${INTENT},2030-01-31T09:59:59.000Z,2030-01-31T10:00:01.000Z,${ACT},12.51,${JUDGED.policy},${JUDGED.approvals.join(' ')},,,,,,1970-01-01T00:00:00.005Z,,,`,
    '2030-02-01T10:00:00.000Z,r,1,7,12.5,wallet-1,,,,,,,,,,,,,,,,,,,,,',
  ]);
  const ofTime = await audit('export --offline --since 2030-01-31 --until 2030-02-01 --json');
  const row = { payout_id: 'q', signer: 'shop', act: ACT, outcome: 'accepted' };
  expect(JSON.parse(ofTime.stdout)).toMatchObject(row);
  expect(await audit('export --since yesterday')).toMatchObject({ code: 2, stdout: '' });
});

it('payouts audit adopt-journal states that nothing is missing; asks first', async () => {
  const before = await folder.text();
  const required = { code: 2, stderr: textWith(/--yes: is required/) };
  expect(await audit('adopt-journal --reason new')).toMatchObject(required);
  expect(await audit('adopt-journal --yes')).toMatchObject({ code: 2 });
  expect(await folder.text()).toBe(before);
  const adopted = { code: 0, stdout: textWith(/^Journal [0-9a-f]{12} counts as complete/) };
  const why = ['--reason', 'new account'];
  expect(await audit('adopt-journal --yes --by alice', '1', why)).toMatchObject(adopted);
  const complete = { at: expect.any(Number), by: 'alice', reason: 'new account' };
  expect((await folder.lines()).at(-1)).toEqual({ complete });
  // A process that has it open reads it.
  expect(await journal.changedByOthers()).toBe(true);
  expect((await verify()).report).toMatchObject({ bornAt: 0, faults: [] });
  const made = await audit('adopt-journal --yes --json --reason first', '2');
  expect(JSON.parse(made.stdout)).toMatchObject({ journalId: textWith(/^\w{12}$/), reason: 'first' });
});

it('payouts audit upgrade-journal chains a journal of a former format', async () => {
  const before = await folder.text();
  const { stdout } = await audit('upgrade-journal --json');
  expect(JSON.parse(stdout)).toEqual({ journalId: journal.journalId, bornAt: journal.bornAt });
  expect(await folder.text()).toBe(before);
  await folder.write([{ v: 2, journalId: 'abcdef012345' }, LEDGER, aSend('p', 1)]);
  const { report } = await verify();
  expect([report['unchained'], report['faults'], report['bornAt']]).toEqual([3, [], undefined]);
  const upgraded = /^Journal abcdef012345 has the format of this version and begins at /;
  expect((await audit('upgrade-journal')).stdout).toMatch(upgraded);
  const chained = { unchained: 3, lines: 4, faults: [], bornAt: expect.any(Number) };
  expect((await verify()).report).toMatchObject(chained);
});
