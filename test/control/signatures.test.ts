import { describe, expect, it, jest } from '@jest/globals';
import { type ActContent, signAct } from '../../src/control/approvals/sign-act.js';
import {
  type Act,
  formatAct,
  hashAct,
  parseAct,
  serializeAct,
  type SignedAct,
  verifyAct,
} from '../../src/control/approvals/act.js';
import {
  APPROVAL_LIFETIME_MS,
  countApprovals,
  formatApproval,
  makeApproval,
  signApproval as signWith,
} from '../../src/control/approvals/approval.js';
import { formatIntent, type Intent } from '../../src/control/intents/intent.js';
import {
  type PaidPayout,
  type ReceiptResult,
  ReceiptSigner,
  verifyReceipt,
} from '../../src/control/intents/receipt.js';
import { verifyIntent } from '../../src/control/intents/verify-intent.js';
import type { BoundKeyring, KeyRole } from '../../src/control/keys/keyring.js';
import type { Approval, SignedApproval } from '../../src/ledger/control-record.js';
import { keyEntry, type KeyEntry, keyringOf, TEST_AUDIENCE, testKey, testSigner } from './support/keys.js';
import { DAY_MS, entryOf, iso, MINUTE_MS, NOW, PAYMENT, PLATFORM, signApproval, signIntent } from './support/signed.js';
import { signText } from './support/sign-at-once.js';

/** When a signature counts, to the millisecond. Test/forging has who may not sign, and what was altered. */

interface Given {
  readonly at?: string;
  readonly expiresAt?: string;
  /** After it was signed. */
  readonly altered?: Partial<Intent>;
  readonly entry?: Partial<KeyEntry>;
  readonly name?: string;
  readonly now?: number;
}
const NOW_1 = NOW + 1;
const keysOf = (role: KeyRole, entry: Partial<KeyEntry> = {}) => keyringOf(keyEntry(testKey(1), { role, ...entry }));
const timesOf = ({ at = iso(NOW), expiresAt = iso(NOW + DAY_MS) }: Given) => ({ at, expiresAt });
const stated = { audience: TEST_AUDIENCE, payoutId: 'p', intent: 'ab'.repeat(32), by: 'shop' };

function intentOf(given: Given): Intent {
  const { at: issuedAt, expiresAt } = timesOf(given);
  const payment = { payoutId: 'p', paymentId: 6, amount: '12.5', addressTo: 'wallet' };
  return { ...payment, audience: TEST_AUDIENCE, platformId: PLATFORM, issuedAt, expiresAt };
}
function verdictOf(given: Given) {
  const { name: key = 'shop', now = NOW_1, entry, altered } = given;
  const intent = intentOf(given);
  const signature = signText(formatIntent(intent), testKey(1));
  return verifyIntent({ ...intent, ...altered }, { key, signature }, keysOf('producer', entry), now);
}
const judgeIntent = (given: Given) => {
  const verdict = verdictOf(given);
  return verdict.kind === 'verified' ? 'counts' : verdict.fault;
};

function judgeAct(given: Given) {
  const act: Act = { ...stated, ...timesOf(given), act: 'resend', attempt: 1, reason: 'ticket 813' };
  const signed = { ...act, signature: signText(formatAct(PLATFORM, act), testKey(1)) };
  const verdict = verifyAct(PLATFORM, signed, act, keysOf('operator', given.entry), given.now ?? NOW_1);
  return verdict.kind === 'verified' ? 'counts' : verdict.message;
}

function judgeApproval(given: Given) {
  const approval = { ...stated, ...timesOf(given), decision: 'approve', reason: '', ...PAYMENT } as const;
  const signed = { ...approval, signature: signText(formatApproval(PLATFORM, approval), testKey(1)) };
  const rule = { keyring: keysOf('approver', given.entry), lifetimeMs: 7 * DAY_MS, now: given.now ?? NOW_1 };
  const payout = { ...stated, platformId: PLATFORM, signedBy: 'x', requestedBy: undefined, payment: PAYMENT };
  const { refused, counted } = countApprovals(payout, [signed], rule);
  return counted.length > 0 ? 'counts' : (refused[0]?.message ?? '');
}

const KEY_TIME = 'it was issued outside the time of the key "shop"';
it.each<[string, Given, fault: string, message: RegExp]>([
  ['the first ms of the key', { entry: { notBefore: iso(NOW) } }, 'counts', /^counts$/],
  ['a ms before the key', { entry: { notBefore: iso(NOW + 1) } }, 'key_not_valid', new RegExp(`^${KEY_TIME}`)],
  ['a key that ended since', { entry: { notAfter: iso(NOW) }, now: NOW + DAY_MS - 1 }, 'counts', /^counts$/],
  ['a ms after the key', { entry: { notAfter: iso(NOW - 1) } }, 'key_not_valid', new RegExp(`^${KEY_TIME}`)],
  ['5 minutes ahead', { now: NOW - 5 * MINUTE_MS }, 'counts', /^counts$/],
  ['5 minutes and 1 ms ahead', { now: NOW - 5 * MINUTE_MS - 1 }, 'issued_in_future', /which is in the future$/],
  ['a clock that is none', { now: NaN }, 'issued_in_future', /which is in the future$/],
  ['the time of its end', { now: NOW + DAY_MS }, 'expired', /^it expired at /],
  ['an end before the beginning', { expiresAt: iso(NOW - 1) }, 'expired', /^it expired at /],
  ['a lifetime of 7 days', { expiresAt: iso(NOW + 7 * DAY_MS) }, 'counts', /^counts$/],
  [
    'a lifetime of 7 days and 1 ms',
    { expiresAt: iso(NOW + 7 * DAY_MS + 1) },
    'lifetime',
    /^it is signed for too long$/,
  ],
  ['times without milliseconds', { at: '2026-11-21T20:00:00Z' }, 'counts', /^counts$/],
])('the signature of an intent, an act and an approval with %s', (_, given, fault, message) => {
  expect(judgeIntent(given)).toBe(fault);
  for (const judge of [judgeAct, judgeApproval]) expect(judge(given)).toMatch(message);
});

describe('verifyIntent', () => {
  it.each([
    ...['', '2026-11-21T20:00:00', '2026-11-21T20:00:00+00:00', '2026-11-21 20:00:00Z', '2026-13-01T00:00:00Z'],
  ])('refuses the time %j', (text) => {
    expect([judgeIntent({ at: text }), judgeIntent({ expiresAt: text })]).toEqual(['fields', 'fields']);
  });

  it('shows no name that is no name of a key', () => {
    for (const name of ['shop\nx', '\u001b[2J', 'x'.repeat(33), ''])
      expect(verdictOf({ name })).toMatchObject({ fault: 'fields', message: 'A field was altered: key.' });
  });

  /** Each breaks one more rule than the next; the first that is broken is named. */
  it('checks in the documented order: fields, key, role, revoked, validity, signature, times', () => {
    const late: Given = { now: NOW + 8 * DAY_MS, expiresAt: iso(NOW + 7 * DAY_MS + 1) };
    const forged: Given = { ...late, altered: { payoutId: 'q' } };
    const invalid: Given = { ...forged, entry: { notAfter: iso(NOW - 1) } };
    const revoked: Given = { ...forged, entry: { ...invalid.entry, revoked: true } };
    const wrong: Given = { ...forged, entry: { ...revoked.entry, role: 'operator' } };
    const unknown: Given = { ...wrong, name: 'nobody' };
    const fields: Given = { ...unknown, altered: { payoutId: 'a\nb' } };
    const ahead: Given = { now: NOW - DAY_MS, expiresAt: iso(NOW - 2 * DAY_MS) };
    const all = [fields, unknown, wrong, revoked, invalid, forged, late, ahead];
    expect(all.map(judgeIntent)).toEqual([
      ...['fields', 'unknown_key', 'wrong_role', 'revoked_key', 'key_not_valid', 'bad_signature', 'expired'],
      'issued_in_future',
    ]);
    // What cannot come about in good faith is tampering.
    expect(all.map((given) => Reflect.get(verdictOf(given), 'isTampering') as unknown)).toEqual([
      ...[true, false, true, false, false, true, false, false],
    ]);
  });
});

const WORKER = entryOf(2, 'worker-1', 'worker');
const KEYRING = keyringOf(keyEntry(testKey(1)), WORKER);
const fields = { payoutId: 'p', paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
const unsigned: PaidPayout = { ...fields, attempt: 1, gatewayId: 'h-1' };
const signedFor = (audience: string): PaidPayout => ({
  ...{ ...unsigned, signed: signIntent(fields, { audience }) },
});
const payout = signedFor(TEST_AUDIENCE);

/** As a worker signs a month after the payout was signed. */
async function sign(given: PaidPayout, keyring: BoundKeyring | undefined): Promise<ReceiptResult> {
  const clock = { wallNow: () => NOW + 30 * DAY_MS };
  const receipts = new ReceiptSigner({
    signer: testSigner('worker-1', 2),
    platformId: PLATFORM,
    audience: TEST_AUDIENCE,
    keyring,
    clock,
  });
  return receipts.sign(given, 'completed');
}

function receiptVerdict(given: PaidPayout, result: ReceiptResult, change: object = {}, platformId = PLATFORM) {
  if (result.kind !== 'signed') throw new Error(result.message);
  const receipt = { ...result.receipt, ...change };
  return verifyReceipt(platformId, { ...given, state: 'completed', receipt }, KEYRING);
}

it('a worker signs for a payout whose own signature was good when it was sent, also after that ended', async () => {
  const receipt = await sign(payout, KEYRING);
  expect(receiptVerdict(payout, receipt).kind).toBe('verified');
  // For one account and one environment.
  expect(receiptVerdict(payout, receipt, {}, PLATFORM + 1).kind).toBe('refused');
  for (const audience of ['staging', undefined])
    expect(receiptVerdict(payout, receipt, { audience }).kind).toBe('refused');
});

it('a receipt that the signer does not sign in time is none, and does not wait', async () => {
  jest.useFakeTimers();
  try {
    const signer = { name: 'worker-1', sign: async () => new Promise<never>(() => undefined) };
    const clock = { wallNow: () => NOW };
    const receipts = new ReceiptSigner({
      signer,
      platformId: PLATFORM,
      audience: TEST_AUDIENCE,
      keyring: KEYRING,
      clock,
    });
    const signing = receipts.sign(payout, 'completed');
    await jest.advanceTimersByTimeAsync(10_000);
    expect(await signing).toEqual({ kind: 'failed', message: 'The signer did not answer within 10 s' });
  } finally {
    jest.useRealTimers();
  }
});

it('a worker with a keyring signs nothing for a payout that was not signed, or whose signature does not count', async () => {
  const revoked = keyringOf(keyEntry(testKey(1), { revoked: true }), WORKER);
  for (const [given, message, keyring = KEYRING] of [
    [unsigned, 'it is not signed'],
    [{ ...payout, amount: '13' }, 'is not over this payout'],
    [{ ...payout, addressTo: 'a\nb' }, 'addressTo'],
    [{ ...payout, gatewayId: 'a\nb' }, 'gatewayId'],
    [signedFor('staging'), 'signed for "staging"'],
    [signedFor(''), 'signed for another audience'],
    [payout, 'is revoked', revoked],
  ] as const)
    expect(await sign(given, keyring)).toEqual({ kind: 'refused', message: expect.stringContaining(message) });
});

it('a worker without a keyring signs for any payout, and the receipt names no intent where there is none', async () => {
  const result = await sign(unsigned, undefined);
  expect([receiptVerdict(unsigned, result).kind, receiptVerdict(payout, result).kind]).toEqual(['verified', 'refused']);
});

const INTENT = 'ab'.repeat(32);
const CONTENT = { payoutId: 'p', intent: INTENT, decision: 'approve' } as const;
const WANTED = { act: 'resend', payoutId: 'p', intent: INTENT, attempt: 1 } as const;
const ACT: ActContent = { ...WANTED, reason: 'ticket 813' };

const KEYS = ['shop', 'ann', 'ann-yubi', 'bob', 'rita', 'shop-boss'];
const ENTRIES = KEYS.map((name, index) =>
  entryOf(index, name, name === 'shop' ? 'producer' : 'approver', { person: name.replace(/-.*/, '') }),
);

function signed(by: string, change: Partial<Approval> = {}): SignedApproval {
  return signApproval(KEYS.indexOf(by), { ...CONTENT, by, ...change });
}

function count(approvals: readonly SignedApproval[], requestedBy = 'Rita') {
  const payout = { ...CONTENT, platformId: PLATFORM, signedBy: 'shop', requestedBy, payment: PAYMENT };
  return countApprovals(payout, approvals, { keyring: keyringOf(...ENTRIES), lifetimeMs: DAY_MS, now: NOW + 1 });
}

describe('approvals of a payout', () => {
  it('count persons, not keys', () => {
    const { approvedBy } = count([signed('ann'), signed('ann-yubi'), signed('bob')]);
    expect(approvedBy).toEqual(new Set(['ann', 'bob']));
  });

  it.each<[string, SignedApproval, RegExp]>([
    ['of who signed the payout, with another key', signed('shop-boss'), /shop asked for the payout, and cannot/],
    ['of another intent', signed('ann', { intent: 'cd'.repeat(32) }), /the payout was signed again since/],
    [
      'that shows another address',
      signed('ann', { addressTo: 'wallet-b' }),
      /its addressTo is another than that of the payout/,
    ],
    ['that shows another amount', signed('ann', { amount: '1' }), /its amount is another/],
    ['that shows no payment', signed('ann', { paymentId: undefined } as never), /its paymentId is another/],
    ['of two lines', { ...signed('ann'), payoutId: 'p\nintent=' }, /^payoutId: must not contain control characters/],
    ['that holds for longer than the policy lets it', signed('ann', { expiresAt: iso(NOW + DAY_MS + 1) }), /too long/],
  ])('do not count one %s', (_, approval, message) => {
    const refused = [{ by: approval.by, message: expect.stringMatching(message) }];
    expect(count([approval])).toMatchObject({ approvedBy: new Set(), refused });
  });

  it.each(['RITA', 'r-ita', 'Rita\u200b', '\u202erita', 'R\u00edta', '\uff32ita'])(
    'do not count one of who asked for it, whom the intent spells %s',
    (spelling) => {
      expect(count([signed('rita')], spelling).approvedBy.size).toBe(0);
    },
  );
});

it('a signed act holds for seven days, counts for what it says, and is read from what was stored only', async () => {
  const keyring = keyringOf(entryOf(1, 'olga', 'operator'));
  const stored = await signAct({ signer: testSigner('olga', 1), audience: TEST_AUDIENCE }, PLATFORM, ACT, NOW);
  const act = parseAct(stored) as SignedAct;
  const { signature, ...content } = act;
  const times = { at: iso(NOW), expiresAt: iso(NOW + 7 * DAY_MS) };
  expect(content).toEqual({ ...ACT, audience: TEST_AUDIENCE, by: 'olga', ...times });
  const verify = (given: SignedAct, wanted: object) =>
    verifyAct(PLATFORM, given, wanted as typeof WANTED, keyring, NOW);
  const actHash = hashAct(PLATFORM, content);
  expect(verify({ ...content, signature }, WANTED)).toEqual({ kind: 'verified', person: 'olga', actHash });
  for (const other of [{ act: 'resume' }, { payoutId: 'b' }, { intent: '' }, { attempt: 2 }, { attempt: undefined }]) {
    const message = expect.stringContaining(`it names another ${Object.keys(other).join()} (`);
    expect(verify(act, { ...WANTED, ...other })).toEqual({ kind: 'refused', message });
  }
  for (const change of [{ payoutId: 'a\nb' }, { attempt: undefined }])
    expect(verify({ ...act, ...change }, WANTED).kind).toBe('refused');
  expect(parseAct(serializeAct(act))).toEqual(act);
  for (const text of ['{', stored.replace('resend', 'pay'), stored.replace('"attempt":1', '"attempt":0')])
    expect(parseAct(text)).toBeUndefined();
});

it('an approval counts for a day', async () => {
  const approver = { name: 'ann', audience: TEST_AUDIENCE };
  const approval = await signWith(
    testSigner('ann', KEYS.indexOf('ann')),
    PLATFORM,
    makeApproval({ ...CONTENT, reason: '', payment: PAYMENT }, approver, NOW, APPROVAL_LIFETIME_MS),
  );
  expect(Date.parse(approval.expiresAt ?? '') - Date.parse(approval.at)).toBe(DAY_MS);
  expect([...count([approval]).approvedBy]).toEqual(['ann']);
});
