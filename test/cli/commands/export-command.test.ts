import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, expect, it } from '@jest/globals';
import { PayoutArchive } from '../../../src/archive/payout-archive.js';
import { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { aSend, LEDGER } from '../../journal/support/journal-folder.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { textWith, useCli } from '../support/cli-rig.js';

const cli = useCli();
const EXAMPLE = fileURLToPath(new URL('../../../examples/bookkeeping.mjs', import.meta.url));
const GUIDE = new URL('../../../docs/bookkeeping.md', import.meta.url);
const HAS_SQLITE = isBuiltin('node:sqlite');

type Line = Readonly<Record<string, unknown>> & { readonly kind: string };

async function exportAll(): Promise<{ text: string; lines: Line[]; stderr: string }> {
  const { code, stdout, stderr } = await cli.run('export');
  expect(code).toBe(0);
  return {
    text: stdout,
    lines: stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line),
    stderr,
  };
}

async function writeJournal(): Promise<void> {
  const dir = (cli.env['SEND_JOURNAL_DIR'] = join(cli.dir, 'journal'));
  const journal = await FileSendJournal.open({ dir, platformId: cli.platformId });
  await journal.bind(LEDGER);
  await journal.append(aSend('p-1', 1));
  journal.noteOutcome(aSend('p-1', 1), { kind: 'accepted', gatewayId: '0xabc' }, 5);
  await journal.close();
}

beforeEach(async () => {
  const { ledger, redis, keys } = cli;
  await ledger.enqueue([aPayout('p-1', { reference: 'invoice 77', amount: '12.500000000000000001' }), aPayout('p-2')]);
  await ledger.change({ payoutId: 'p-1', from: 'queued', to: 'sending' });
  await ledger.change({ payoutId: 'p-1', from: 'sending', to: 'in_progress', gatewayId: '0xabc' });
  await ledger.change({ payoutId: 'p-1', from: 'in_progress', to: 'completed', fee: '0.5' });
  await ledger.change({ payoutId: 'p-2', from: 'queued', to: 'cancelled', by: 'ann', reason: 'twice' });
  await ledger.enqueue([aPayout('p-3'), aPayout('p-4')]);
  await redis.set(keys.payout('p-4'), 'of another type');
  // As retention leaves it where there is no archive.
  await redis.hset(keys.removedBucket('p-gone'), 'p-gone', 'completed');
  cli.env['PAYOUT_ARCHIVE_DIR'] = join(cli.dir, 'archive');
  const folder = { dir: cli.env['PAYOUT_ARCHIVE_DIR'], platformId: cli.platformId };
  await new PayoutArchive(folder).keep([
    { ...(await ledger.require('p-1')), payoutId: 'p-old' },
    // The worker ended before it removed it from Redis.
    await ledger.require('p-1'),
  ]);
  await writeJournal();
});

it('payouts export writes every payout once, sends, acts and events, and ends with their numbers', async () => {
  const { lines, stderr } = await exportAll();
  const ofKind = (kind: string) => lines.filter((line) => line.kind === kind);
  expect(lines[0]).toEqual({ kind: 'account', platformId: cli.platformId, at: textWith(/Z$/) });
  const payouts = ofKind('payout').map(({ payoutId }) => payoutId);
  expect([...payouts].sort()).toEqual(['p-1', 'p-2', 'p-3', 'p-old']);
  expect(ofKind('payout').find(({ payoutId }) => payoutId === 'p-1')).toMatchObject({
    ...{ state: 'completed', final: true, amount: '12.500000000000000001', gatewayId: '0xabc', fee: '0.5' },
    history: [{ to: 'queued' }, { to: 'sending' }, { to: 'in_progress' }, { to: 'completed' }],
  });
  expect(ofKind('unreadable')).toMatchObject([{ payoutId: 'p-4', message: textWith(/another type/) }]);
  expect(stderr).toContain('1 payout cannot be read');
  expect(ofKind('send')).toMatchObject([{ payout_id: 'p-1', outcome: 'accepted', gateway_id: '0xabc' }]);
  expect(ofKind('activity')).toMatchObject([{ what: 'cancelled', by: 'ann', payoutId: 'p-2', reason: 'twice' }]);
  expect(ofKind('event').filter(({ payoutId }) => payoutId === 'p-1')).toHaveLength(4);
  expect(ofKind('removed')).toEqual([{ kind: 'removed', payoutId: 'p-gone', state: 'completed' }]);
  const counts = { payout: 4, unreadable: 1, removed: 1, send: 1, activity: 1, event: ofKind('event').length };
  expect(lines.at(-1)).toEqual({ kind: 'end', counts });
});

it('payouts export says that it has no sends where this host has no journal', async () => {
  cli.env['SEND_JOURNAL_DIR'] = join(cli.dir, 'none');
  const { lines, stderr } = await exportAll();
  expect(stderr).toMatch(/Without sends: No send journal of account \d+ in .*Run the command on the worker's host/);
  expect(lines.at(-1)).toMatchObject({ kind: 'end', counts: { payout: 4, send: 0 } });
});

const onSqlite = HAS_SQLITE ? it : it.skip;
onSqlite('examples/bookkeeping.mjs reads an export back into SQLite, and refuses one that is cut off', async () => {
  const { text } = await exportAll();
  const file = join(cli.dir, 'books.db');
  const run = ['--disable-warning=ExperimentalWarning', EXAMPLE, file];
  const book = (input: string) => spawnSync(process.execPath, run, { input, encoding: 'utf8' });
  // As often as one likes.
  for (const { status, stdout } of [book(text), book(text)]) {
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: textWith(/^4 payouts, 1 sends, 1 acts and \d+ events\.\n$/),
    });
  }
  for (const place of [text.lastIndexOf('{"kind":"event"'), text.length / 2, text.length - 3]) {
    const { status, stderr } = book(text.slice(0, place));
    expect({ status, stderr }).toEqual({ status: 1, stderr: 'The export is cut off: nothing was written.\n' });
  }
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const db = new DatabaseSync(file, { readOnly: true });
  const all = (sql: string) =>
    db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));
  expect(all(`SELECT state, count(*) AS n FROM payouts GROUP BY state ORDER BY state`)).toEqual([
    { state: 'cancelled', n: 1 },
    { state: 'completed', n: 2 },
    { state: 'queued', n: 1 },
  ]);
  expect(all(`SELECT p.amount, p.fee, s.outcome, s.attempt FROM payouts p JOIN sends s USING (payout_id)`)).toEqual([
    { amount: '12.500000000000000001', fee: '0.5', outcome: 'accepted', attempt: 1 },
  ]);
  expect(all('SELECT * FROM removed')).toEqual([{ payout_id: 'p-gone', state: 'completed' }]);
  expect(all(`SELECT by, reason FROM history WHERE payout_id = 'p-2' AND to_state = 'cancelled'`)).toEqual([
    { by: 'ann', reason: 'twice' },
  ]);
  const [, block = ''] = /```sql\n(.*?)```/s.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  const found = block.split(';').flatMap((sql) => (sql.trim() === '' ? [] : [all(sql)]));
  // Only the last finds nothing here.
  expect(found.map((rows) => rows.length > 0)).toEqual([true, true, true, false]);
  db.close();
});
