import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { aSend, LEDGER, makeJournalFolder, type JournalFolder } from '../../journal/support/journal-folder.js';
import type { CliResult } from '../../support/cli.js';
import { runInProcess } from '../support/in-process.js';

/** Without Redis: the commands work where only the journal is. */

const INTENT = '1a'.repeat(32);
const ACT = 'ac'.repeat(32);
const AT = Date.parse('2030-01-31T10:00:00Z');
const SIGNED = { intent: INTENT, key: 'shop', issuedAt: AT - 1_000, expiresAt: AT + 1_000, act: ACT, clears: [1] };

const JUDGED = { policy: 'b'.repeat(64), usd: '12510000', approvals: ['c'.repeat(64), 'd'.repeat(64)] };

let folder: JournalFolder;
let journal: FileSendJournal;
beforeEach(async () => {
  folder = await makeJournalFolder();
  journal = await folder.open();
  await journal.bind(LEDGER);
  await journal.append(aSend('p', 1, { at: AT - 86_400_000 }));
  journal.noteOutcome(aSend('p', 1), { kind: 'rejected', message: '=no' }, 5);
  await journal.append(aSend('q', 2, { at: AT, attempt: 2, signed: SIGNED, judged: JUDGED }));
  journal.noteOutcome(aSend('q', 2, { attempt: 2 }), { kind: 'accepted', txhash: 'h' }, 5);
  await journal.append(aSend('r', 3, { at: AT + 86_400_000 }));
});
afterEach(async () => folder.close());

const run = async (...args: string[]): Promise<CliResult> =>
  runInProcess(args, {
    REDIS_URL: 'redis://127.0.0.1:1',
    GATEWAY_PLATFORM_ID: '1',
    SEND_JOURNAL_DIR: folder.dir,
  });
const verify = async (...args: string[]): Promise<{ code: number; report: Record<string, unknown> }> => {
  const { code, stdout } = await run('audit', 'verify', '--offline', '--json', ...args);
  return { code: code ?? -1, report: JSON.parse(stdout) as Record<string, unknown> };
};

describe('payouts audit verify', () => {
  it('shows what the journal comes to, and its head', async () => {
    const { code, report } = await verify();
    expect(code).toBe(0);
    expect(report).toMatchObject({
      journalId: journal.journalId,
      files: 1,
      lines: 7,
      sends: 3,
      unchained: 0,
      faults: [],
    });
    expect(report['head']).toMatch(/^[0-9a-f]{64}$/);
    const { stdout } = await run('audit', 'verify', '--offline');
    expect(stdout).toMatch(
      /^journal +[0-9a-f]{12}\nfiles +1\nlines +7\nsends +3\nbegins +\d.*\nhead +[0-9a-f]{64}\nchain +whole\nsignatures +1 signed send: not verified: PAYOUT_KEYS_FILE names no keyring; 2 unsigned\nledger +NOT COMPARED: left out \(--offline\)\nfindings +none\n$/,
    );
  });

  it('exits 5 and shows every line that was altered', async () => {
    await writeFile(folder.path(), (await folder.text()).replace('wallet-1', 'wallet-2'));
    const { code, report } = await verify();
    expect(code).toBe(5);
    expect(report['faults']).toEqual([
      { file: folder.path(), line: 4, message: expect.stringMatching(/^a line that it follows is not there/) },
    ]);
    const { stdout, stderr } = await run('audit', 'verify', '--offline');
    expect(stdout).toMatch(/\nchain +1 fault\n.*1\.journal:4: a line that it follows/);
    expect(stderr).toBe('');
  });

  it('exits 5 where the head is not there any more', async () => {
    const head = String((await verify()).report['head']);
    expect(await verify('--head', head)).toMatchObject({ code: 0, report: { found: { line: 7 } } });
    await writeFile(folder.path(), `${(await folder.texts()).slice(0, -1).join('\n')}\n`);
    expect((await verify('--head', head)).code).toBe(5);
    const { stdout } = await run('audit', 'verify', '--offline', '--head', head);
    expect(stdout).toMatch(/\nhead given +not in this journal\nchain +whole\n/);
  });

  it('says that Redis was not compared, with exit code 1, and exports nothing without it', async () => {
    const { code, stdout } = await run('audit', 'verify');
    expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringMatching(/\nledger +NOT COMPARED: .*Redis/) });
    expect(await run('audit', 'export')).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/Redis/) });
    // What is wrong with the journal says more.
    await writeFile(folder.path(), (await folder.text()).replace('wallet-1', 'wallet-2'));
    expect((await run('audit', 'verify')).code).toBe(5);
  });

  it('exits 2 for a head that is none, 3 where there is no journal', async () => {
    const wrong = await run('audit', 'verify', '--head', 'ABC');
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
    expect(wrong.stderr).toMatch(/--head: must be 64 hexadecimal digits.*got "ABC"/);
    for (const args of [
      ['audit', 'verify', '--offline'],
      ['audit', 'export', '--offline'],
      ['audit', 'upgrade-journal'],
    ]) {
      const missing = await runInProcess(args, { GATEWAY_PLATFORM_ID: '2', SEND_JOURNAL_DIR: folder.dir });
      expect(missing).toMatchObject({ code: 3, stdout: '' });
      expect(missing.stderr).toMatch(/No send journal of account 2 in .*\. Run the command on the worker's host/);
    }
  });
});

describe('payouts audit export', () => {
  const HEADER =
    'sent_at,payout_id,attempt,payment_id,amount,address_to,symbol,outcome,txhash,message,signer,intent,issued_at,expires_at,act,usd,policy,approvals,currency,fee,signer_person,approved_by,requested_by,answered_at,state,state_at,reference';

  it('prints every send with its outcome and who signed it', async () => {
    const { stdout } = await run('audit', 'export', '--offline', '--csv');
    expect(stdout.trimEnd().split('\n')).toEqual([
      HEADER,
      "2030-01-30T10:00:00.000Z,p,1,7,12.5,wallet-1,,rejected,,'=no,,,,,,,,,,,,,,1970-01-01T00:00:00.005Z,,,",
      `2030-01-31T10:00:00.000Z,q,2,7,12.5,wallet-1,,accepted,h,,shop,${INTENT},2030-01-31T09:59:59.000Z,2030-01-31T10:00:01.000Z,${ACT},12.51,${JUDGED.policy},${JUDGED.approvals.join(' ')},,,,,,1970-01-01T00:00:00.005Z,,,`,
      '2030-02-01T10:00:00.000Z,r,1,7,12.5,wallet-1,,,,,,,,,,,,,,,,,,,,,',
    ]);
  });

  it('prints those of a time, also as JSON', async () => {
    const { stdout } = await run(
      'audit',
      'export',
      '--offline',
      '--since',
      '2030-01-31',
      '--until',
      '2030-02-01',
      '--json',
    );
    expect(JSON.parse(stdout)).toMatchObject({ payout_id: 'q', signer: 'shop', act: ACT, outcome: 'accepted' });
    const wrong = await run('audit', 'export', '--since', 'yesterday');
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('payouts audit adopt-journal', () => {
  it('states that nothing is missing; a process that has the journal open reads it', async () => {
    expect(journal.bornAt).toBeGreaterThan(0);
    const { code, stdout } = await run('audit', 'adopt-journal', '--yes', '--by', 'alice', '--reason', 'new account');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Journal [0-9a-f]{12} counts as complete/),
    });
    expect((await folder.lines()).at(-1)).toEqual({
      complete: { at: expect.any(Number), by: 'alice', reason: 'new account' },
    });
    expect(await journal.changedByOthers()).toBe(true);
    await journal.reload();
    expect(journal.bornAt).toBe(0);
    expect((await verify()).report).toMatchObject({ bornAt: 0, faults: [] });
  });

  it('asks first, and makes a journal where there is none', async () => {
    const before = await folder.text();
    const asked = await run('audit', 'adopt-journal', '--reason', 'new account');
    expect(asked).toMatchObject({ code: 2, stderr: expect.stringMatching(/--yes: is required/) });
    expect(await folder.text()).toBe(before);
    expect(await run('audit', 'adopt-journal', '--yes')).toMatchObject({ code: 2 });
    const made = await runInProcess(['audit', 'adopt-journal', '--yes', '--json', '--reason', 'first start'], {
      GATEWAY_PLATFORM_ID: '2',
      SEND_JOURNAL_DIR: folder.dir,
    });
    const second = await FileSendJournal.open({ dir: folder.dir, platformId: 2 });
    await second.close();
    expect(JSON.parse(made.stdout)).toMatchObject({ journalId: second.journalId, reason: 'first start' });
    expect(second.bornAt).toBe(0);
  });
});

describe('payouts audit upgrade-journal', () => {
  it('chains a journal of a former format, and changes nothing of one that is chained', async () => {
    const before = await folder.text();
    const { stdout } = await run('audit', 'upgrade-journal', '--json');
    expect(JSON.parse(stdout)).toEqual({ journalId: journal.journalId, bornAt: journal.bornAt });
    expect(await folder.text()).toBe(before);
    await folder.write([{ v: 2, journalId: 'abcdef012345' }, LEDGER, aSend('p', 1)]);
    expect((await verify()).report).toMatchObject({ unchained: 3, faults: [] });
    expect((await verify()).report['bornAt']).toBeUndefined();
    expect((await run('audit', 'upgrade-journal')).stdout).toMatch(
      /^Journal abcdef012345 has the format of this version and begins at /,
    );
    expect((await verify()).report).toMatchObject({ unchained: 3, lines: 4, faults: [], bornAt: expect.any(Number) });
  });
});
