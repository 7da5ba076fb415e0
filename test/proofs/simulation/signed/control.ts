import type { KeyObject } from 'node:crypto';
import {
  hashAct,
  serializeAct,
  type Act,
  type SignedAct,
  formatAct,
  ACT_LIFETIME_MS,
} from '../../../../src/control/approvals/act.js';
import { formatApproval, paymentOf } from '../../../../src/control/approvals/approval.js';
import { INTENT_LIFETIME_MS } from '../../../../src/control/intents/intent-signer.js';
import { hashIntent, intentOf } from '../../../../src/control/intents/intent.js';
import type { WithdrawRequest } from '../../../../src/gateway/gateway.js';
import type { JournalLine, SendLine } from '../../../../src/journal/journal-line.js';
import type { ApprovalDecision, SignedApproval } from '../../../../src/ledger/control-record.js';
import type { Payout, NewPayout } from '../../../../src/ledger/payout.js';
import { keyEntry, keyringOf, testKey, TEST_AUDIENCE } from '../../../control/support/keys.js';
import { Random } from '../../../doubles/random.js';
import { type Authority, newPayout } from '../../../world/worker.js';
import { type World, type WorldProcess, WALL_START } from '../../../world/world.js';
import type { JournalFile } from '../journal-file.js';
import { inFlightOf, type Plan, type Settings } from '../plan.js';
import type { ChanceWorld } from '../simulation.js';
import { IntentSigner, signText } from '../../../control/support/sign-at-once.js';

export const PLATFORM_ID = 1;

export const KEYS = { shop: testKey(1), ann: testKey(2), thief: testKey(3) };

export type ApproverKey = Readonly<{ name: string; person: string; private: KeyObject }>;

export const APPROVER_KEYS: readonly ApproverKey[] = 'Ann Ann Bob Bob Cy Cy Dee Shop Eve'
  .split(' ')
  .map((person, number, all) => ({
    name: `${person.toLowerCase()}-${all.indexOf(person) === number ? 1 : 2}`,
    ...{ person, private: testKey(10 + number) },
  }));

export const KEYRING = keyringOf(
  keyEntry(KEYS.shop),
  keyEntry(KEYS.ann, { name: 'ann', role: 'operator', person: 'Ann' }),
  ...APPROVER_KEYS.map(({ name, person, private: key }) => keyEntry(key, { name, person, role: 'approver' })),
);

export function signAct(stated: Omit<Act, 'audience'>, key: KeyObject): SignedAct {
  const act = { audience: TEST_AUDIENCE, ...stated };
  return { ...act, signature: signText(formatAct(PLATFORM_ID, act), key) };
}

export function storeAct(act: SignedAct): Readonly<{ text: string; hash: string }> {
  return { text: serializeAct(act), hash: hashAct(PLATFORM_ID, act) };
}

export function intentHashOf(payout: Payout) {
  if (payout.signed === undefined) throw new Error('it is not signed');
  return hashIntent(intentOf(PLATFORM_ID, payout, payout.signed));
}

export function signApproval(
  key: ApproverKey,
  { payoutId }: Payout,
  about: Payout,
  decision: ApprovalDecision,
  [at, expiresAt]: readonly [at: number, expiresAt: number],
): SignedApproval {
  const expiry = decision === 'approve' ? { expiresAt: new Date(expiresAt).toISOString() } : {};
  const intent = intentHashOf(about);
  const payment = decision === 'approve' ? paymentOf(about) : {};
  const said = { audience: TEST_AUDIENCE, payoutId, ...payment, intent, decision, reason: '', by: key.name };
  const stated = { ...said, at: new Date(at).toISOString(), ...expiry };
  return { ...stated, signature: signText(formatApproval(PLATFORM_ID, stated), key.private) };
}

/** @param rejection - its hash */
export function signUnreject(
  { name, private: privateKey }: ApproverKey,
  { payoutId }: Payout,
  rejection: string,
  at: number,
) {
  const said = { audience: TEST_AUDIENCE, payoutId, intent: rejection, decision: 'unreject', reason: '' } as const;
  const stated = { ...said, by: name, at: new Date(at).toISOString() };
  return { ...stated, signature: signText(formatApproval(PLATFORM_ID, stated), privateKey) };
}

type Payment = Pick<WithdrawRequest, 'paymentId' | 'amount' | 'addressTo'> & Readonly<{ symbol?: string | undefined }>;

const describe = ({ paymentId, amount, addressTo, symbol = '' }: Payment) =>
  JSON.stringify([paymentId, amount, addressTo, symbol]);

/**
 * Everything that was really signed in a run, beside the system: what is journaled and written is held against it. It knows
 * nothing of signatures, so a mistake in verifying them is no mistake of the judge.
 */
function openBook(world: Pick<World, 'now' | 'fail'>, settings: Settings) {
  const { guardMs } = settings;
  const payments = new Map<string, number>();
  const intents = new Map<string, Readonly<{ payoutId: string; payment: string }>>();
  const acts = new Map<string, Omit<Act, 'audience'>>();
  const journals = new Map<
    string,
    { pausedBy: string | undefined; pausedAt: number; endedUpTo: number; used: Map<string, string> }
  >();
  const triedAt = new Map<string, number>();
  const sends = new Set<string>();
  const journalOf = (journalId: string) => {
    const none = { pausedBy: undefined, pausedAt: 0, endedUpTo: 0, used: new Map<string, string>() };
    const journal = journals.get(journalId) ?? none;
    journals.set(journalId, journal);
    return journal;
  };
  type Journal = ReturnType<typeof journalOf>;

  const begins = ({ name }: WorldProcess, { pausedBy, used }: Journal, line: SendLine) => {
    const { payoutId, attempt, token, signed, request } = line;
    triedAt.set(payoutId, world.now);
    sends.add(token);
    const what = `${name} begins ${payoutId} ${attempt}`;
    const intent = intents.get(signed?.intent ?? '');
    if (intent?.payoutId !== payoutId || intent.payment !== describe(request)) {
      world.fail(`unsigned: ${what} with an intent that is not of it`);
    }
    if (pausedBy === name) world.fail(`paused: ${what}, although it noted a pause that no operator ended`);
    if (signed?.act === undefined) return;
    const act = acts.get(signed.act);
    const isOfIt = act?.act === 'resend' && act.payoutId === payoutId && act.intent === signed.intent;
    if (!isOfIt || signed.clears?.join() !== String(act.attempt)) {
      world.fail(`unsigned: ${what} with an act that is not of it: ${JSON.stringify(act)}`);
    }
    if ((used.get(signed.act) ?? token) !== token) world.fail(`unsigned: ${what} with an act that was used`);
    used.set(signed.act, token);
  };

  const resumed = (journal: Journal, hash: string) => {
    const act = acts.get(hash);
    if (act?.act !== 'resume') world.fail('paused: it was ended by no act of an operator');
    else if (journal.pausedBy !== undefined && Date.parse(act.at) < journal.pausedAt) {
      world.fail('paused: it was ended by an act from before it');
    }
    // Noted late, by a process that was stopped: the pause since then stands.
    if (journal.used.has(hash)) return;
    journal.used.set(hash, 'resume');
    journal.pausedBy = undefined;
    journal.endedUpTo = Math.max(journal.endedUpTo, Date.parse(act?.at ?? ''));
  };

  return {
    noteAct: (hash: string, act: Omit<Act, 'audience'>) => acts.set(hash, act),
    knowsIntent: (intent: string) => intents.has(intent),
    mayArrive: (payoutId: string) =>
      world.now - (triedAt.get(payoutId) ?? -Infinity) <= 1.002 * inFlightOf(settings) + 1_000,

    noteIntent(payout: NewPayout) {
      const { signed, payoutId } = payout;
      if (signed === undefined) return;
      const payment = describe(payout);
      intents.set(hashIntent(intentOf(PLATFORM_ID, { ...payout, notBefore: undefined }, signed)), {
        payoutId,
        payment,
      });
      payments.set(payment, Math.max(payments.get(payment) ?? 0, Date.parse(signed.expiresAt)));
    },

    isComplete(lines: readonly JournalLine[]) {
      const known = new Set(lines.flatMap((line) => ('request' in line ? [line.token] : [])));
      return [...sends].every((token) => known.has(token));
    },

    written(process: WorldProcess, request: Payment) {
      const expiresAt = payments.get(describe(request));
      if (expiresAt === undefined)
        world.fail(`unsigned: ${process.name} writes ${describe(request)}, which nobody signed`);
      else if (process.wallNow() - expiresAt >= guardMs) {
        world.fail(`unsigned: ${process.name} writes ${request.addressTo} after its signature expired`);
      }
    },

    journaled(process: WorldProcess, journalId: string, line: JournalLine) {
      const journal = journalOf(journalId);
      // A process that is stopped while it writes hears late of its line, which others may have read and ended.
      if ('paused' in line && line.paused.at > journal.endedUpTo)
        Object.assign(journal, { pausedBy: process.name, pausedAt: line.paused.at });
      else if ('resumed' in line) resumed(journal, line.resumed.act);
      else if ('request' in line) begins(process, journal, line);
    },
  };
}

export const FIRST_BIRTH = WALL_START - 8 * 24 * 60 * 60 * 1_000;
const MINUTE_MS = 60_000;
export const CLOCKS_WITHIN_MS = 2 * MINUTE_MS;

export type SimControl = ReturnType<typeof openControl>;

export function openControl(
  seed: number,
  world: ChanceWorld,
  { settings, faultsForMs, times }: Plan,
  policed?: { payout(payoutId: string): NewPayout },
) {
  /** A stream of its own: the faults of a seed are the same with and without signatures. */
  const random = new Random(seed ^ 0x5167_6e65);
  const book = openBook(world, settings);
  const hasAttacker = random.chance(0.5) && policed === undefined;
  const operatorAheadMs = random.pick([0, random.between(0, 280_000)]);
  const signedPayouts = new Map<string, NewPayout>();
  const { situations } = world;

  const signAs = (act: 'resend' | 'resume', about: Pick<Act, 'payoutId' | 'intent' | 'attempt'>) => {
    const at = world.wallNow() + operatorAheadMs;
    const lifetime = random.chance(0.1) ? random.between(5_000, 60_000) : ACT_LIFETIME_MS;
    const moments = { at: new Date(at).toISOString(), expiresAt: new Date(at + lifetime).toISOString() };
    const stated = { act, ...about, reason: 'looked it up', by: 'ann', ...moments };
    const { text, hash } = storeAct(signAct(stated, KEYS.ann));
    book.noteAct(hash, stated);
    return text;
  };

  const sign = (payoutId: string, ageMs: number) => {
    const payout = policed?.payout(payoutId) ?? newPayout(payoutId);
    const clock = { wallNow: () => Math.round(world.wallNow() - ageMs) };
    const key = { name: 'shop', privateKey: KEYS.shop };
    const signer = new IntentSigner({ key, platformId: PLATFORM_ID, audience: TEST_AUDIENCE, clock });
    const signature = signer.sign(payout, { requestedBy: payout.requestedBy });
    const signed = { ...payout, signed: { ...signature, isVerified: true as const } };
    signedPayouts.set(payoutId, signed);
    book.noteIntent(signed);
    return signed;
  };

  /** Signed now, long ago so that it expires within the run, or by a clock that is ahead. */
  const drawAge = () =>
    random.pick([
      () => 0,
      () => 0,
      () => INTENT_LIFETIME_MS - random.between(0, faultsForMs),
      // What a clock that is ahead signs may seem younger than a journal that was begun after it was sent.
      () => (times.journalLost === 0 ? random.between(-9, -2) * MINUTE_MS : 0),
    ])();

  return {
    ...{ random, book, hasAttacker },

    journaled(process: WorldProcess, { journalId, isPaused }: JournalFile, line: JournalLine) {
      if ('paused' in line && isPaused) situations.meet('a pause is kept');
      if ('resumed' in line) situations.meet('a kept pause is ended by an act');
      if ('request' in line && line.signed?.act !== undefined) situations.meet('an act is used');
      book.journaled(process, journalId, line);
    },

    /** After a journal forgot expired intents, a clock that is set back would make them valid again. */
    setBack(process: WorldProcess) {
      if (!world.faultsOn || random.chance(0.5)) return;
      process.wallOffsetMs -= 2 * CLOCKS_WITHIN_MS;
      world.note(() => `${process.name}: its wall clock is set back`);
    },

    /** @returns until when the intents expired that the journal forgets; 0 where it forgets none */
    drawPruned(lines: readonly JournalLine[], now: number) {
      if (policed !== undefined || !random.chance(0.5)) return 0;
      const expiries = lines.flatMap((line) => ('request' in line ? (line.signed?.expiresAt ?? []) : []));
      const expired = expiries.filter((expiresAt) => expiresAt <= now);
      if (expired.length > 0) situations.meet('a journal forgets expired sends');
      return Math.max(0, ...expired);
    },

    watch: (authority: Authority): Authority => ({
      permit: (payout) => authority.permit(payout),
      judgeResume: (act, pausedAt) => {
        const verdict = authority.judgeResume(act, pausedAt);
        if (verdict.kind === 'refused') situations.meet('an act that ends no pause is refused');
        return verdict;
      },
    }),

    payout: (payoutId: string) => signedPayouts.get(payoutId) ?? sign(payoutId, drawAge()),
    renew: (payoutId: string) => sign(payoutId, 0),
    resumeAct: () => signAs('resume', { payoutId: '', intent: '', attempt: undefined }),

    resendAct(payout: Payout) {
      const { payoutId, attempt, signed } = payout;
      if (signed === undefined || attempt < 1) return undefined;
      const intent = intentHashOf(payout);
      return book.knowsIntent(intent) ? signAs('resend', { payoutId, intent, attempt }) : undefined;
    },
  };
}
