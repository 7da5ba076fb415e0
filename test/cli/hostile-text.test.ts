import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { COMMAND_GROUPS } from '../../src/cli/command-groups.js';
import { createOutput } from '../../src/cli/context/cli-context.js';
import { testRedisUrl } from '../support/account.js';
import { type ApprovalRig, openApprovalRig } from './support/approval-rig.js';
import { openSampleAccount, type SampleAccount } from '../dashboard/support/sample-account.js';
import { HOLD } from '../ledger/contract/ledger-rig.js';
import { runInProcess } from './support/in-process.js';

/** Text that someone put into Redis, into a file or behind a command to rewrite what an operator's terminal shows. */

const HOSTILE = 'x\u001b[2J\u001b]0;t\u0007\r\u0085\u202e\u200b\u2028\u{e0041}\u001b[32mgreen';
const UNSHOWN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/u;
const FAKED = `${HOSTILE}\nFAKED`;

let rig: ApprovalRig;
let dir: string;
const shownBy = new Set<string>();

beforeAll(async () => {
  rig = await openApprovalRig();
  dir = await mkdtemp(join(tmpdir(), 'payouts-hostile-'));
  await rig.hold('p');
  await rig.enqueue('q');
  const { ledger } = rig.account;
  const { redis, keys } = ledger.connection;
  const now = Date.now();
  for (const payoutId of ['p', 'q']) {
    const fields =
      'reference message requestedBy gatewayId symbol key amount addressTo batch notBefore lateGatewayId'.split(' ');
    const texts = Object.fromEntries(fields.map((field) => [field, FAKED]));
    const comment = `${now.toString(36)}\t${FAKED}\t${FAKED}`;
    const others = { c0: comment, metadata: JSON.stringify(FAKED), h0: `q${now.toString(36)}\t${FAKED}\t${FAKED}` };
    await redis.hset(keys.payout(payoutId), { ...texts, ...others });
  }
  const held = { kind: 'policy', rule: FAKED, reason: FAKED, message: FAKED, needs: { by: FAKED, persons: 1 } };
  await redis.hset(keys.payout('p'), 'held', JSON.stringify(held));
  await redis.zadd(keys.state('queued'), 9, `${HOSTILE}-id`);
  await redis.hset(keys.payout(`${HOSTILE}-id`), { state: FAKED });
  await redis.hset(keys.ledger, { pausedReason: FAKED, pausedBy: FAKED, pausedAt: now });
  await redis.hset(keys.sender, { owner: FAKED, epoch: 3, beat: 1, released: 0, sends: 2, last: FAKED });
  const journal = { journalId: FAKED, host: FAKED, dir: FAKED, sends: 1, token: FAKED, at: now };
  await redis.hset(keys.journals, FAKED, JSON.stringify(journal));
  const objection = { kind: 'ledger', reason: FAKED, at: now, journalId: FAKED };
  await redis.hset(keys.objections, FAKED, JSON.stringify(objection));
  await redis.zadd(keys.late, now, FAKED);
  const currencies = [{ paymentId: 7, name: FAKED }];
  await redis.hset(keys.gateway, 'currencies', JSON.stringify({ at: now, currencies }));
  await redis.hset(keys.workers, FAKED, JSON.stringify({ host: FAKED, at: now, version: FAKED }));
  for (const by of [FAKED, 'ann']) {
    const about = ['type', 'paused', 'payoutId', FAKED, 'from', '', 'to', ''];
    const act = [...about, 'at', String(now), 'by', by, 'reason', FAKED];
    await redis.xadd(keys.activity, '*', ...act, 'count', '1', 'since', '');
    await redis.xadd(keys.events, '*', ...act);
  }
  const hostile = JSON.stringify(HOSTILE);
  const policy = `version: 1\nplatformId: "${ledger.connection.platformId}"\ndefault: hold\nrules:\n`;
  const columns = `payout_id,payment_id,amount,address_to,${HOSTILE.replace(/[\r\n]/g, '')}`;
  for (const [name, text] of Object.entries({
    'policy.yaml': `${policy}  - { name: r, cap: { amount: "1" }, over: refuse }\n`,
    'bad.yaml': `version: 1\ndefault: hold\nrules:\n  - { name: "a\\u202e", "\\u001b[2J": 1 }\n`,
    'rows.csv': `${columns}\n\u001b[2J,x\u202e,\u0085,\u001b]0;,\n`,
    'ids.txt': `\u001b[2J\u202e\n`,
    'rows.jsonl': `{"payoutId":${hostile},"amount":${hostile},${hostile}:1}\n`,
  })) {
    await writeFile(join(dir, name), text, { mode: 0o600 });
  }
  Object.assign(rig.env, {
    ...{ PAYOUT_POLICY_FILE: join(dir, 'policy.yaml'), SEND_JOURNAL_DIR: dir, REDIS_URL: testRedisUrl() },
    ...{ GATEWAY_BASE_URL: 'http://127.0.0.1:1', GATEWAY_SECRET_KEY: 'k-hostile' },
    ...{ PAYOUT_SIGNER: rig.files.ann, PAYOUT_SIGNER_NAME: 'ann' },
  });
}, 60_000);

afterAll(async () => {
  await rig.close();
  await rm(dir, { recursive: true, force: true });
});

/** What each command is called with; those of the list shows hostile text for certain. */
const CALLS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  enqueue: [['--payout-id', HOSTILE, '--payment-id', '6', '--amount', HOSTILE, '--address-to', HOSTILE]],
  import: ['rows.csv --yes'.split(' '), 'rows.jsonl --dry-run'.split(' '), [HOSTILE, '--yes']],
  get: [['p'], ['q'], ['p', '--json'], [HOSTILE], ['--gateway-id', HOSTILE]],
  list: [['--state', 'held'], ['--state', 'held', '--json'], ['--batch', HOSTILE], [`--${HOSTILE}`]],
  export: [[]],
  cancel: [[HOSTILE, '--reason', HOSTILE], '--file ids.txt --reason x --yes'.split(' ')],
  uncancel: [
    [HOSTILE, '--reason', HOSTILE],
    ['--cancelled-for', HOSTILE, '--reason', HOSTILE, '--yes'],
  ],
  comment: [
    [HOSTILE, '--text', HOSTILE],
    ['p', '--text', HOSTILE],
    ['p', '--text', 'I am on it', '--by', 'ann'],
    ['p', '--text', 'I am on it', '--json'],
  ],
  hold: [
    [HOSTILE, '--reason', HOSTILE],
    ['p', '--reason', HOSTILE],
  ],
  retry: [['p', '--reason', HOSTILE]],
  release: [[HOSTILE, '--reason', HOSTILE]],
  approvals: [[], ['--json']],
  approve: ['p', HOSTILE].map((payoutId) => [payoutId, '--key', 'FILE', '--yes']),
  reject: [['p', '--key', 'FILE', '--reason', HOSTILE]],
  unreject: [['p', '--key', 'FILE', '--reason', HOSTILE, '--yes']],
  resolve: [[HOSTILE, '--sent', '--gateway-id', HOSTILE, '--reason', HOSTILE]],
  status: [[], ['--json']],
  stats: [[], ['--json']],
  events: [['--json'], []],
  activity: [[], ['--json']],
  pause: [['--reason', HOSTILE]],
  resume: [['--reason', HOSTILE]],
  'new-account': [['--reason', HOSTILE]],
  'redis-replicas': [
    ['1', '--reason', HOSTILE],
    [HOSTILE, '--reason', HOSTILE],
  ],
  'adopt-ledger': [['--reason', HOSTILE, '--yes']],
  keys: [
    ['generate', HOSTILE, '--role', 'producer', '--person', HOSTILE, '--out', 'key.pem'],
    ['check'],
    [HOSTILE],
    ['sign', 'rows.jsonl'],
    ['sign', HOSTILE],
    ['verify', 'p'],
    ['verify', 'p', '--json'],
    ['verify', HOSTILE],
  ],
  policy: [['explain', 'p'], ['explain', HOSTILE], ['check', 'bad.yaml'], ['usage']],
  audit: [
    ['verify'],
    ['verify', '--json'],
    ['export', '--since', HOSTILE],
    ['adopt-journal', '--reason', HOSTILE, '--yes'],
  ],
  gateway: [['status', HOSTILE]],
  reconcile: [[], ['--json']],
  doctor: [[], ['--json']],
  completion: [[HOSTILE]],
};
/** They run until they are stopped; what they log is asked below. */
const SERVERS = ['worker', 'dashboard', 'notify', 'serve', 'sandbox', 'demo'];

it('asks every command', () => {
  const names = COMMAND_GROUPS.flatMap(({ commands }) => commands.map(({ usage }) => usage.split(' ')[0] ?? ''));
  expect([...Object.keys(CALLS), ...SERVERS].sort()).toEqual(names.sort());
});

const rows = Object.entries(CALLS).flatMap(([command, calls]) => calls.map((args) => ({ command, args })));
const nameOf = (text: string) => (text.startsWith('x\u001b') ? 'HOSTILE' : text);
it.each(rows.map((row) => ({ ...row, name: [row.command, ...row.args.map(nameOf)].join(' ') })))(
  'what reaches a terminal is plain text: $name',
  async ({ command, args }) => {
    const resolved = args.map((arg) =>
      arg === 'FILE' ? rig.files.ann : /\.(csv|jsonl|txt|yaml|pem)$/.test(arg) ? join(dir, arg) : arg,
    );
    const { stdout, stderr } = await rig.run(command, ...resolved);
    const shown = `${stdout}${stderr}`;
    if (shown.includes('\\u{1b}')) shownBy.add(command);
    expect(shown).not.toBe('');
    expect(UNSHOWN.exec(shown)?.[0]).toBeUndefined();
    expect(shown).not.toMatch(/^FAKED/m);
    if (args.includes('--json')) for (const line of stdout.split('\n').filter(Boolean)) JSON.parse(line);
  },
  30_000,
);

it('hostile text was shown in plain by what shows it, and is the data itself in CSV for a file or a pipe', async () => {
  const shows = 'get list status stats events activity doctor policy import keys approvals'.split(' ');
  expect(shows.filter((command) => !shownBy.has(command))).toEqual([]);
  expect((await rig.run('list', '--state', 'held', '--csv')).stdout).toContain(HOSTILE);
});

it('output keeps the colours that the program made, and no others', () => {
  let text = '';
  const append = (part: string) => void (text += part);
  const output = createOutput({ writeOut: append, writeErr: append, isTerminal: true, isColoured: true });
  output.write(output.colours.green(`a\u001b[31mb`));
  output.writeError('a\u001b[32m');
  output.writeCsv('a,\u202e\n');
  expect(text).toBe('\u001b[32ma\\u{1b}[31mb\u001b[39ma\\u{1b}[32ma,\\u{202e}\n');
  text = '';
  output.writeJson({ [HOSTILE]: FAKED });
  expect(UNSHOWN.test(text)).toBe(false);
  expect(JSON.parse(text)).toEqual({ [HOSTILE]: FAKED });
});

const ID = '7f1c2a7e-3f0e-4d8e-9b54-0a1b2c3d4e5f';
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const TXHASH = `0x${'9f86d081'.repeat(8)}`;
const MESSAGE = 'Insufficient balance: top the account up, then retry it';

let account: SampleAccount;
let env: Record<string, string>;
beforeAll(async () => {
  account = await openSampleAccount();
  env = { GATEWAY_PLATFORM_ID: String(account.connection.platformId) };
  await account.sendAs(ID, { kind: 'rejected', message: MESSAGE });
  await account.sendAs('paid', { kind: 'accepted', gatewayId: TXHASH }, { amount: '1234567.123456789' });
  await account.sendAs('short', { kind: 'unknown', reason: 'no complete response within 120000 ms' }, { batch: 'b' });
  await account.enqueue('held', { batch: 'b', requestedBy: 'Ann' });
  await account.sender.holdPayout('held', 0, HOLD);
  await account.ledger.pause('ann', 'maintained until noon, '.repeat(6).trim());
  await account.enqueue('wide', { reference: '支払い'.repeat(20), batch: 'b' });
});
afterAll(async () => account.close());

/** What `payouts` prints on a terminal of this width. */
async function show(columns: number, command: string) {
  const { stdout } = process;
  const before = { isTTY: stdout.isTTY, columns: stdout.columns };
  Object.assign(stdout, { isTTY: true, columns });
  try {
    return stripVTControlCharacters((await runInProcess(command.split(' '), env)).stdout);
  } finally {
    Object.assign(stdout, before);
  }
}

it.each([60, 120])('on a terminal of %d columns no line is longer, and what is copied is whole', async (columns) => {
  for (const command of [
    ...['list --batch b', 'list --state rejected', 'list --since 2020-01-01', 'get paid', `get ${ID}`, 'stats'],
    ...['stats --batch b', 'activity'],
  ]) {
    const lines = (await show(columns, command)).split('\n');
    expect(lines.length).toBeGreaterThan(2);
    const long = lines.filter((line) => line.length > columns && !line.startsWith('  payouts '));
    expect([command, long]).toEqual([command, []]);
  }
  expect(await show(columns, 'list --state rejected')).toMatch(new RegExp(`^${ID}( |$)`, 'm'));
  const shown = await show(columns, 'get paid');
  for (const whole of columns >= 80 ? [ADDRESS, TXHASH] : [ADDRESS]) expect(shown).toContain(whole);
});

it('cuts nothing without a terminal', async () => {
  const piped = (await runInProcess(['list', '--state', 'rejected'], env)).stdout;
  expect(piped).toContain(MESSAGE);
  expect(Math.max(...piped.split('\n').map((line) => line.length))).toBeGreaterThan(120);
});
