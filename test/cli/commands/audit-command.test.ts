import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { FileSendJournal } from '../../../src/journal/file-send-journal.js';
import { aSend, type JournalFolder, LEDGER, makeJournalFolder } from '../../journal/support/journal-folder.js';
import type { CliResult } from '../../support/cli.js';
import { textWith } from '../support/cli-rig.js';
import { runInProcess } from '../support/in-process.js';
import { compareSend, type Removal } from '../../../src/cli/audit/compare-send.js';
import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import { type AuditedRecord, KnownAttempts } from '../../../src/ledger/reads/read-audited.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { isFinal, PAYOUT_STATES, type PayoutState } from '../../../src/ledger/states.js';

/** Without Redis: the commands work where only the journal is. */

const [INTENT, ACT] = ['1a'.repeat(32), 'ac'.repeat(32)];
const AT = Date.parse('2030-01-31T10:00:00Z');
const DAY_MS = 86_400_000;
const SIGNED = {
  ...{ intent: INTENT, key: 'shop', issuedAt: AT - 1_000, expiresAt: AT + 1_000, act: ACT, clears: [1] },
  proof: { signature: 'S', audience: 'shop' },
};
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
  journal.noteOutcome(aSend('q', 2, { attempt: 2 }), { kind: 'accepted', gatewayId: 'h' }, 5);
  await journal.append(aSend('r', 3, { at: AT + DAY_MS }));
});
afterEach(async () => folder.close());

const audit = async (args: string, id = '1', more: readonly string[] = []): Promise<CliResult> => {
  const env = { REDIS_URL: 'redis://127.0.0.1:1', GATEWAY_PLATFORM_ID: id, SEND_JOURNAL_DIR: folder.dir };
  return runInProcess(['audit', ...args.split(' '), ...more], env);
};
const verify = async (args = '') => {
  const { code, stdout } = await audit(`verify --offline --json${args}`);
  return { code, report: JSON.parse(stdout) as Record<string, unknown> };
};
it('payouts audit verify shows what the journal comes to, and its head, which must still be there', async () => {
  const head = String((await verify()).report['head']);
  expect((await audit('verify --offline')).stdout).toMatch(
    /^journal +[0-9a-f]{12}\nfiles +1\nlines +7\nsends +3\nbegins +\d.*\nhead +[0-9a-f]{64}\nchain +whole\nsignatures +1 signed send: not verified: PAYOUT_KEYS_FILE names no keyring; 2 unsigned\nledger +NOT COMPARED: left out \(--offline\)\nfindings +none\n$/,
  );
  expect(await verify(` --head ${head}`)).toMatchObject({ code: 0, report: { found: { line: 7 } } });
  await writeFile(folder.path(), `${(await folder.texts()).slice(0, -1).join('\n')}\n`);
  const cut = textWith(
    /\nhead given +not in this journal\nchain +whole\n[^]*\nfindings +1\n[^]*no line of this journal has the hash of --head, [0-9a-f]{64}: its end was cut off/,
  );
  expect(await audit(`verify --offline --head ${head}`)).toMatchObject({ code: 5, stdout: cut });
});

it('payouts audit verify exits 5 and shows a line that was altered; 1 where Redis was not compared', async () => {
  const uncompared = { code: 1, stdout: textWith(/\nledger +NOT COMPARED: .*Redis/) };
  expect(await audit('verify')).toMatchObject(uncompared);
  expect(await audit('export')).toMatchObject({ code: 1, stdout: '', stderr: textWith(/Redis/) });
  await writeFile(folder.path(), (await folder.text()).replace('wallet-1', 'wallet-2'));
  const shown = textWith(/\nchain +1 fault\n.*1\.journal:4: a line that it follows/);
  expect(await audit('verify')).toMatchObject({ code: 5, stdout: shown });
});

it('payouts audit verify exits 2 for a head that is none, 3 where there is no journal', async () => {
  const wrong = textWith(/--head: must be 64 hexadecimal digits.*got "ABC"/);
  expect(await audit('verify --head ABC')).toMatchObject({ code: 2, stdout: '', stderr: wrong });
  const missing = textWith(/No send journal of account 2 in .*\. Run the command on the worker's host/);
  for (const args of ['verify --offline', 'export --offline']) {
    expect(await audit(args, '2')).toMatchObject({ code: 3, stdout: '', stderr: missing });
  }
});

it('payouts audit export prints every send with its outcome and who signed it', async () => {
  const { stdout } = await audit('export --offline --csv');
  const [columns, ...rows] = stdout.trimEnd().split('\n');
  expect(columns).toBe(
    'sent_at,payout_id,attempt,payment_id,amount,address_to,symbol,outcome,gateway_id,txhash,message,signer,intent,issued_at,expires_at,act,usd,policy,approvals,currency,fee,signer_person,approved_by,requested_by,answered_at,state,state_at,reference',
  );
  const judged = `${ACT},12.51,${JUDGED.policy},${JUDGED.approvals.join(' ')}`;
  expect(rows).toEqual([
    textWith("2030-01-30T10:00:00.000Z,p,1,7,12.5,wallet-1,,rejected,,,'=no,,"),
    textWith(`,accepted,h,,,shop,${INTENT},2030-01-31T09:59:59.000Z,2030-01-31T10:00:01.000Z,${judged},,`),
    '2030-02-01T10:00:00.000Z,r,1,7,12.5,wallet-1,,,,,,,,,,,,,,,,,,,,,,',
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

const ACCEPTED: JournaledOutcome = { kind: 'accepted', gatewayId: 'h' };
const REJECTED: JournaledOutcome = { kind: 'rejected', message: 'no' };
const UNKNOWN: JournaledOutcome = { kind: 'unknown', reason: 'silence', inFlightUntil: 0 };
const NOT_SENT: JournaledOutcome = { kind: 'not_sent', reason: 'the connection ended' };

function found(state: PayoutState, given: Partial<Payout> = {}, tokens = 't-1'): AuditedRecord {
  const about = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1', attempt: 1, requeueCount: 0 };
  const payout: Payout = {
    ...about,
    state,
    final: isFinal(state),
    createdAt: '',
    updatedAt: '',
    history: [],
    ...given,
  };
  return { kind: 'payout', payout, attempts: new KnownAttempts({ attempt: String(payout.attempt), tokens }) };
}

const removed = (state: string): AuditedRecord => ({ kind: 'removed', state });

const REMOVAL: Removal = {
  ...{ hasLater: false, retentionDays: 30, isArchived: false, now: aSend('p', 1).at + 30 * DAY_MS },
};

/** The words of what is found: `right`, `on word` or kinds. */
function compare(outcome: JournaledOutcome | undefined, record: AuditedRecord, removal: Partial<Removal> = {}) {
  const send = aSend('p', 1, { attempt: 1, ...(outcome && { outcome }) });
  const { findings, isOnWord } = compareSend(send, record, { ...REMOVAL, ...removal });
  return isOnWord ? 'on word' : findings.length === 0 ? 'right' : findings.map(({ kind }) => kind).join();
}

it.each<[string, JournaledOutcome | undefined, ofRecord: PayoutState[], ofRemoved: PayoutState[]]>([
  [
    ...(['accepted', ACCEPTED] as const),
    ['sending', 'in_progress', 'completed', 'failed', 'unknown'],
    ['completed', 'failed'],
  ],
  [
    'rejected',
    REJECTED,
    ['queued', 'held', 'sending', 'rejected', 'unknown', 'cancelled', 'written_off'],
    ['rejected', 'cancelled', 'written_off'],
  ],
  ['unknown', UNKNOWN, ['sending', 'unknown', 'written_off'], ['completed', 'failed', 'written_off', 'cancelled']],
  ['no outcome', undefined, ['sending', 'unknown', 'written_off'], ['completed', 'failed', 'written_off', 'cancelled']],
  [
    'not sent',
    NOT_SENT,
    ['queued', 'held', 'sending', 'unknown', 'cancelled', 'written_off'],
    ['cancelled', 'written_off'],
  ],
])(
  'a state that follows from a journal that says %s is right, every other is found',
  (_, outcome, ofRecord, ofRemoved) => {
    const gatewayId = outcome?.kind === 'accepted' ? { gatewayId: 'h' } : {};
    for (const state of PAYOUT_STATES) {
      const inRecord = compare(outcome, found(state, gatewayId));
      expect([state, inRecord]).toEqual([state, ofRecord.includes(state) ? 'right' : 'state']);
      const wasRemoved = compare(outcome, removed(state));
      expect([state, wasRemoved]).toEqual([state, ofRemoved.includes(state) ? 'right' : 'state']);
    }
  },
);

const SAME_NAME: JournaledOutcome = { kind: 'accepted', gatewayId: 'h', txhash: 'h' };
const OWN_NAME: JournaledOutcome = { kind: 'accepted', gatewayId: 'h', txhash: 'hash' };
const LONG: JournaledOutcome = { kind: 'accepted', gatewayId: 'ab'.repeat(32) };
const AGAIN = { attempt: 2, gatewayId: `0x${'AB'.repeat(32)}` };
const VOUCHED = { gatewayId: 'given', vouchedGatewayId: 'given' };
const WORD = found('completed', VOUCHED);
const SECOND = found('completed', { attempt: 2, gatewayId: 'second' }, 't-1 t-2');
/** Two attempts of one number, from before and after Redis came back older: the newest has the state. */
const BOTH = found('completed', { gatewayId: 'second' }, 't-1/t-2');
const NO_DAYS = { retentionDays: undefined };

type Compared = [expected: string, JournaledOutcome | undefined, AuditedRecord, Partial<Removal>?];
it.each<Compared>([
  ['gateway_id', ACCEPTED, found('completed', { gatewayId: 'other' })],
  ['gateway_id', ACCEPTED, found('completed')],
  ['gateway_id', SAME_NAME, found('completed', { gatewayId: 'h', txhash: 'other' })],
  ['right', SAME_NAME, found('completed', { gatewayId: 'h', txhash: 'h' })],
  ['right', SAME_NAME, found('completed', { gatewayId: 'h' })],
  // A gateway with names of its own may replace a transaction.
  ['right', OWN_NAME, found('completed', { gatewayId: 'h', txhash: 'other' })],
  ['right', LONG, found('completed', { gatewayId: AGAIN.gatewayId })],
  ['right', LONG, found('completed', AGAIN, 't-1 t-2')],
  ...[ACCEPTED, REJECTED, UNKNOWN, undefined].map((outcome): Compared => ['on word', outcome, WORD]),
  ['state', UNKNOWN, found('completed', { ...VOUCHED, gatewayId: 'another' })],
  ['on word', UNKNOWN, found('queued', { requeueCount: 1 })],
  // Of what was accepted, nobody can state that it was not sent.
  ['state', ACCEPTED, found('queued', { requeueCount: 1 })],
  ['not_in_ledger', ACCEPTED, { kind: 'missing' }],
  ['not_in_ledger', undefined, { kind: 'missing' }],
  ['right', NOT_SENT, { kind: 'missing' }],
  ['not_in_ledger', ACCEPTED, found('queued', { attempt: 0 }, '')],
  ['not_in_ledger', ACCEPTED, found('completed', { gatewayId: 'h' }, 'other')],
  ['right', NOT_SENT, found('queued', { attempt: 0 }, '')],
  ['right', REJECTED, removed('completed'), { hasLater: true }],
  ['state', ACCEPTED, removed('rejected'), { hasLater: true }],
  ['removed', ACCEPTED, removed('completed'), NO_DAYS],
  ['removed', ACCEPTED, removed('completed'), { now: REMOVAL.now - 1 }],
  ['removed', ACCEPTED, removed('completed'), { retentionDays: 31 }],
  ['right', ACCEPTED, removed('completed'), { ...NO_DAYS, isArchived: true }],
  ['state', ACCEPTED, removed('rejected'), { ...NO_DAYS, isArchived: true }],
  ['sent_again', ACCEPTED, SECOND],
  ...[REJECTED, UNKNOWN, NOT_SENT, undefined].map((outcome): Compared => ['right', outcome, SECOND]),
  ['right', ACCEPTED, found('completed', { attempt: 2, gatewayId: 'h' }, 't-1 t-2')],
  ['right', REJECTED, BOTH],
  ['sent_again', ACCEPTED, BOTH],
])('is %s: the journal says %j, the ledger %j', (...[expected, ...compared]: Compared) => {
  expect(compare(...compared)).toBe(expected);
});

it('another payment than the one that was sent is found', () => {
  const others = { paymentId: 8, amount: '12.50', addressTo: 'wallet-2', symbol: 'USD' };
  for (const [field, value] of Object.entries(others)) {
    const { findings } = compareSend(aSend('p', 1), found('unknown', { [field]: value }), REMOVAL);
    const message = expect.stringContaining(`and is ${value} in the ledger`);
    expect(findings).toMatchObject([{ payoutId: 'p', attempt: 1, kind: 'altered', message }]);
  }
});

it('the attempts that a record names are known by number and token', () => {
  const knows = (record: Record<string, string>, ...attempts: [attempt: number, token: string][]): boolean[] =>
    attempts.map(([attempt, token]) => new KnownAttempts(record).knows({ attempt, token }));
  const record = { attempt: '3', tokens: 'a b/c ?' };
  expect(knows(record, [1, 'a'], [2, 'b'], [2, 'c'], [3, 'd'])).toEqual([true, true, true, false]);
  expect(knows(record, [1, 'b'], [0, ''], [4, 'd'])).toEqual([false, false, false]);
  expect(new KnownAttempts(record).isNewest({ attempt: 2, token: 'c' })).toBe(false);
  // What nothing writes takes no time.
  for (const attempt of ['1e300', 'many']) expect(knows({ attempt }, [5, 'x'])).toEqual([false]);
});
