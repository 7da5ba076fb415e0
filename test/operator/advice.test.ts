import type { OrderLookUp } from '../../src/ledger/order-look-up.js';
import { execFileSync } from 'node:child_process';
import { expect, it } from '@jest/globals';
import type { SignedApproval } from '../../src/ledger/control-record.js';
import type { KnownJournal, Objection } from '../../src/ledger/sender-ledger.js';
import { PAYOUT_STATES, type PayoutState } from '../../src/ledger/states.js';
import { adviseAccount } from '../../src/operator/account-advice.js';
import { describeEvidence } from '../../src/operator/describe-look-up.js';
import { batchSteps, nextSteps, shellQuote } from '../../src/operator/next-steps.js';

type Stats = Parameters<typeof adviseAccount>[0];

const DIR = '/var/lib/payouts';
const SIGNED = { isSigned: true };

function journal(journalId: string, host: string, dir = `/mnt/${host}`): KnownJournal {
  return { journalId, host, dir, sends: 0, token: '', at: 0 };
}

function objection(journalId: string, host: string, given: Partial<Objection> = {}): Objection {
  return { journalId, kind: 'ledger', reason: 'older.', host, dir: `/mnt/${host}`, sends: 0, at: 0, ...given };
}

const QUIET: Stats = { platformId: 42, objections: [], journals: [], paused: false, pausedReason: null, pauses: [] };
const advise = (given: Partial<Stats>, options = {}) => adviseAccount({ ...QUIET, ...given }, options);

const [A, B] = [objection('j-a', 'a'), objection('j-b', 'b')];
const PAUSE = { paused: true, pausedReason: 'blocked' };

it('adviseAccount says how a pause is ended, but of objections only', () => {
  expect(advise({ journals: [journal('j-a', 'a')] })).toEqual([]);
  const command = 'payouts resume --account 42';
  const advice = { kind: 'pause', problem: 'paused: blocked', first: 'Remove the cause first.' };
  expect(advise(PAUSE)).toEqual([{ ...advice, command: `${command} --reason WHY` }]);
  expect(advise(PAUSE, SIGNED)[0]?.command).toBe(`${command} --key FILE --reason WHY`);
  const pauses = ['worker', 'zoe'].map((by) => ({ by, reason: 'blocked', at: '' }));
  expect(advise({ ...PAUSE, pauses })).toMatchObject([
    { problem: 'paused: blocked (by worker); blocked (by zoe)', command: `${command} --of worker --reason WHY` },
  ]);
  // No cause has to be removed: a person looks at what came back.
  const adopted = { ...PAUSE, pauses: [{ by: 'adoption', reason: 'adopted', at: '' }] };
  expect(advise(adopted)[0]?.first).toMatch(/^Look first at what came back held or queued, and cancel/);
  const stops = advise({ objections: [A, objection('unnamed', '', { dir: '', reason: 'none' })], ...PAUSE });
  const problem = 'send journal j-a on a: older. send journal unnamed: none';
  expect(stops).toMatchObject([{ kind: 'objection', problem }]);
  expect(JSON.stringify(stops)).not.toContain('resume');
});

it.each<[string, Objection[], KnownJournal[], string]>([
  ['all that are known', [B], [journal('j-a', 'a'), journal('j-b', 'b')], '--journal /mnt/a --journal /mnt/b'],
  [
    'copies of a folder that two hosts have',
    [objection('j-a', 'a', { dir: DIR })],
    [journal('j-b', 'b', DIR), journal('j-c', 'c')],
    `--journal COPY-FROM-b:${DIR} --journal /mnt/c --journal COPY-FROM-a:${DIR}`,
  ],
  ['one whose place is not known, given up', [A], [journal('j-b', '', '')], '--journal /mnt/a --give-up j-b'],
  ['a damaged one, given up', [A, { ...B, kind: 'journal' }], [], '--journal /mnt/a --give-up j-b'],
])('adviseAccount names the folders where the ledger forgot sends: %s', (_, objections, journals, words) => {
  const [advice] = advise({ objections, journals });
  expect(advice?.command).toBe(`payouts adopt-ledger --account 42 ${words} --reason WHY`);
  expect(advice?.first).toMatch(/^Restore the newest copy of the Redis data.*replace its --journal DIR with --give-up/);
});

it.each<[string, Objection, string, string]>([
  ['put back, else given up', { ...A, kind: 'journal' }, '--journal /mnt/a ', '--give-up j-a'],
  ['given up where its place is not known', { ...A, kind: 'journal', dir: '' }, '', '--give-up j-a'],
])('adviseAccount has a damaged journal %s', (_, damaged, putBack, giveUp) => {
  const [advice] = advise({ objections: [damaged], journals: [journal('j-b', 'b')] });
  expect(advice?.first).toContain(`\`payouts adopt-ledger --account 42 ${putBack}--reason WHY\``);
  expect(advice?.command).toBe(`payouts adopt-ledger --account 42 ${giveUp} --reason WHY`);
});

function toWords(...commands: readonly string[]): string[][] {
  const script = commands.map((command) => `set -- ${command}; printf '%s\\0' "$@"; printf '\\1\\0'`).join('\n');
  const words = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0\u0001\0').slice(0, -1);
  return words.map((each) => each.split('\0'));
}

const PAYMENT = { payoutId: 'order:7', paymentId: 7, amount: '12.5', addressTo: 'rPT1:4711', symbol: 'USD' };
const commandsOf = (state: PayoutState, options = {}, payoutId = 'order:7') =>
  nextSteps({ payoutId, state, attempt: 3 }, 42, options).map(({ command = '' }) => command);

it('nextSteps names the commands for each state, and who has to approve', () => {
  for (const [state, commands] of Object.entries({
    unknown: ['resolve # --sent --gateway-id GATEWAY_ID', 'resolve # --not-sent --attempt 3', 'resolve # --write-off'],
    rejected: ['retry #', 'cancel #'],
    held: ['release #', 'cancel #'],
    queued: ['cancel #', 'hold #'],
  })) {
    const full = (command: string) => `payouts ${command.replace(/#/, '--account 42 order:7')} --reason WHY`;
    expect(commandsOf(state as PayoutState)).toEqual(commands.map(full));
  }
  const held = { kind: 'policy', reason: 'approve', message: 'm', needs: { by: 'finance', persons: 2 } } as const;
  const [first, second] = nextSteps({ payoutId: 'p', state: 'held', held }, 42);
  expect(first?.when).toMatch(/^2 people of the group finance /);
  expect([first?.command, second?.command]).toEqual([
    'payouts approve --account 42 p --key FILE',
    'payouts reject --account 42 p --key FILE --reason WHY',
  ]);
});

it('nextSteps never pays again what was paid late, and pays what failed under a new payoutId', () => {
  for (const state of PAYOUT_STATES) {
    expect(nextSteps({ ...PAYMENT, state, gatewayId: 'a7c1' }, 42)).not.toEqual([]);
    const late = nextSteps({ ...PAYMENT, state, lateGatewayId: 'a7c1' }, 42).map(({ command }) => command);
    expect(late.length).toBeGreaterThan(0);
    expect(late.join()).not.toMatch(/enqueue|retry|release|--not-sent/);
  }
  for (const state of ['failed', 'cancelled'] as const) {
    const command = nextSteps({ ...PAYMENT, state, gatewayId: 'a7c1' }, 42).at(-1)?.command ?? '';
    expect(toWords(command)[0]?.slice(4)).toEqual([
      ...['--payout-id', 'NEW-ID', '--payment-id', '7', '--amount', '12.5', '--address-to', 'rPT1:4711'],
      ...['--symbol', 'USD', '--reference', 'in place of order:7'],
    ]);
  }
});

it.each(['--sent', "it's"])('nextSteps gives a shell the payoutId %s as it is', (payoutId) => {
  for (const words of toWords(...commandsOf('unknown', {}, payoutId), ...commandsOf('unknown', SIGNED, payoutId))) {
    expect(words.slice(0, 2)).toEqual(['payouts', 'resolve']);
    expect(words).toContain(payoutId);
    if (payoutId.startsWith('-')) expect(words.slice(-2)).toEqual(['--', payoutId]);
  }
});

it('nextSteps has the key where operators sign what is sent again, only', () => {
  const all = PAYOUT_STATES.flatMap((state) => commandsOf(state, SIGNED));
  expect(all.filter((command) => command.includes('--key')).sort()).toEqual([
    'payouts resolve --account 42 order:7 --not-sent --attempt 3 --key FILE --reason WHY',
    'payouts retry --account 42 order:7 --key FILE --reason WHY',
  ]);
  expect(PAYOUT_STATES.flatMap((state) => commandsOf(state)).join()).not.toContain('--key');
  const counts = Object.fromEntries(PAYOUT_STATES.map((state) => [state, 1])) as Record<PayoutState, number>;
  const keyed = batchSteps('a --reason b', counts, 7, SIGNED).filter(({ command }) => command?.includes('--key'));
  const retry = `payouts retry --account 7 --batch 'a --reason b'`;
  const [dryRun, really] = ['--dry-run --key FILE --reason WHY', '--key FILE --reason WHY'];
  expect(keyed).toMatchObject([{ command: `(set -e\n  ${retry} ${dryRun}\n  ${retry} ${really}\n)` }]);
});

it('shellQuote quotes whatever a shell would take for something else', () => {
  const words = ['', ' ', '$(id)', '`id`', 'a;b', 'a"b', "a'b", '*', '~', '#x', '\\', 'a\nb', '&', '!'];
  expect(toWords(...words.map(shellQuote))).toEqual(words.map((word) => [word]));
});

it('nextSteps of a payout that a person rejected is to cancel it, and not to change the policy', () => {
  const held = { kind: 'policy', reason: 'refuse', rule: 'four-eyes', message: 'ann rejected it' } as const;
  const decision = { decision: 'reject', by: 'ann' } as unknown as SignedApproval;
  const steps = (given: object) => nextSteps({ payoutId: 'p', state: 'held', held, ...given }, 42);
  expect(steps({ held: { kind: 'rejection', reason: 'rejected', message: 'ann rejected it' } })).toEqual([
    { when: expect.stringContaining('rejected it: cancel it'), command: 'payouts cancel --account 42 p --reason WHY' },
    {
      when: expect.stringContaining('takes that back'),
      command: 'payouts unreject --account 42 p --key FILE --reason WHY',
    },
  ]);
  // A rule refuses it, or it waits for others.
  for (const given of [
    {},
    { approvals: [{ ...decision, decision: 'approve' }] },
    { approvals: [decision], held: { ...held, reason: 'wait' } },
  ])
    expect(steps(given).map(({ command }) => command)).toContain('payouts release --account 42 p --reason WHY');
});

const LOOK_UP: OrderLookUp = {
  ...{ answer: 'refused', message: 'withdrawal not found', count: 5, attempt: 2 },
  ...{ since: '2030-01-01T00:00:00.000Z', at: '2030-01-01T01:00:00.000Z' },
};
const UNKNOWN = { payoutId: 'p', state: 'unknown', attempt: 2 } as const;
const notSent = (payout: Parameters<typeof nextSteps>[0]) =>
  nextSteps(payout, 42).find(({ command }) => command?.includes('--not-sent'));

it('nextSteps gives a person what the worker was answered, as evidence for a statement about that attempt only', () => {
  const asked =
    /asked for it by order id 5 times since 2030-01-01 00:00:00 UTC, last at 2030-01-01 01:00:00 UTC: it did not find it \(withdrawal not found\)/;
  expect(notSent({ ...UNKNOWN, lookUp: LOOK_UP })?.when).toMatch(asked);
  expect(notSent({ ...UNKNOWN, attempt: 3, lookUp: LOOK_UP })?.when).not.toMatch(/asked/);
  expect(notSent(UNKNOWN)?.when).not.toMatch(/asked/);
});

it.each(['found', 'other_payment'] as const)('nextSteps offers no --not-sent if the gateway answered %s', (answer) => {
  const payout = { ...UNKNOWN, lookUp: { ...LOOK_UP, answer } };
  expect(notSent(payout)).toBeUndefined();
  expect(nextSteps(payout, 42)[0]?.when).toMatch(/^The worker asked for it by order id 5 times/);
  expect(notSent({ ...payout, attempt: 3 })).toBeDefined();
});

it.each([
  ['works', / is a hint, and no proof\.$/],
  ['fails', /said: no such order\. That it does not know one says nothing\.$/],
  ['untested', /^It is not known yet .* says nothing\.$/],
] as const)('says what "not found" means where look-ups are known as: %s', (lookUp, text) => {
  expect(describeEvidence({ lookUp, lookUpAt: 0, lookUpMessage: 'no such order' })).toMatch(text);
  expect(describeEvidence({})).toBeUndefined();
});
