import { beforeEach, describe, expect, it } from '@jest/globals';
import { untilAborted } from '../../../src/base/clock.js';
import type { WithdrawOutcome } from '../../../src/gateway/gateway.js';
import type { SenderLedger } from '../../../src/ledger/sender-ledger.js';
import { classifyStop, findBlockedReason, isOfPayout } from '../../../src/gateway/stop-sign.js';
import { blockedReasonOf, KeptPause } from '../../../src/worker/sender/kept-pause.js';
import type { ResumeVerdict } from '../../../src/worker/sender/send-authority.js';
import { noObserver } from '../../../src/worker/sender/worker-observer.js';
import { ManualClock } from '../../doubles/manual-clock.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { LoopWorld } from '../support/loop-rig.js';
import { LEASE_MS, makeRuntime, throwing } from '../support/send-rig.js';
import type { SendReport } from '../../../src/worker/sender/send-report.js';
import { aPayout } from '../../ledger/support/a-payout.js';

const rejected = (message: string): WithdrawOutcome => ({ kind: 'rejected', message, durationMs: 5 });
const REJECTED = rejected('no');
const BLOCKED = rejected('Account is blocked');
const UNKNOWN: WithdrawOutcome = { kind: 'unknown', reason: 'timed out', durationMs: 5 };
const ACCEPTED: WithdrawOutcome = { kind: 'accepted', gatewayId: 'tx-1', durationMs: 5 };

let clock: ManualClock;
let journal: MemoryJournal;
let verdict: ResumeVerdict;
let asked: { readonly act: string | undefined; readonly pausedAt: number }[];
let reported: unknown[][];
let inRedis: { pausedReason?: string; resumeAct?: string };
let pause: KeptPause;

beforeEach(() => {
  clock = new ManualClock();
  journal = new MemoryJournal();
  verdict = { kind: 'refused', message: 'there is no signed act' };
  [asked, reported, inRedis] = [[], [], {}];
  const runtime = makeRuntime({
    clock,
    journal,
    senderLedger: { readSender: async () => Promise.resolve(inRedis) } as unknown as SenderLedger,
    observer: { ...noObserver, signatureRefused: (...what) => void reported.push(what) },
  });
  pause = new KeptPause(runtime, {
    judgeResume: (act, pausedAt) => {
      asked.push({ act, pausedAt });
      return verdict;
    },
  });
});

async function outcomes(...found: readonly WithdrawOutcome[]) {
  for (const outcome of found) pause.noteOutcome(outcome);
  await pause.find();
}

it.each<[string, readonly WithdrawOutcome[], RegExp | undefined]>([
  ['an account that the gateway blocked', [BLOCKED], /blocked/],
  [
    'no rejections or unknowns, however many: the ledger counts those',
    Array(9).fill(REJECTED).concat(Array(9).fill(UNKNOWN)) as WithdrawOutcome[],
    undefined,
  ],
  ['no acceptance', [ACCEPTED], undefined],
])('an outcome pauses %s', async (_, found, reason) => {
  await outcomes(...found);
  expect(pause.reason ?? 'none').toMatch(reason ?? /^none$/);
});

it('what pauses is noted once, as of the moment it was seen', async () => {
  const seenAt = clock.wallNow();
  pause.note('the first');
  clock.wallOffsetMs += 5_000;
  pause.note('the second');
  await pause.find();
  expect(journal.lines.filter((line) => 'paused' in line)).toEqual([{ paused: { at: seenAt, reason: 'the first' } }]);
});

it('without a pause nobody is asked for an act, nor Redis for its reason', async () => {
  inRedis = { pausedReason: 'of Redis' };
  expect([await pause.find(), asked, reported]).toEqual([undefined, [], []]);
});

describe('a kept pause that Redis does not know', () => {
  beforeEach(async () => {
    await outcomes(BLOCKED);
    asked = [];
  });

  it('stands, and is reported once', async () => {
    expect(await pause.find()).toMatch(/was not ended by a signed act: there is no signed act/);
    expect(await pause.find()).toMatch(/payouts resume --key/);
    expect(reported).toEqual([['resume', true]]);
    expect(journal.pausedReason).toBeDefined();
  });

  it('ends by the act that counts, which the journal notes', async () => {
    verdict = { kind: 'accepted', actHash: 'a'.repeat(64) };
    inRedis = { resumeAct: '{"act":"resume"}' };
    const { pausedAt } = journal;
    expect([await pause.find(), asked]).toEqual([undefined, [{ act: '{"act":"resume"}', pausedAt }]]);
    expect(journal.lines.at(-1)).toEqual({ resumed: { at: clock.wallNow(), act: 'a'.repeat(64) } });
    expect(pause.reason).toBeUndefined();
  });

  it('is the reason of Redis while that has one: nobody is asked for an act', async () => {
    inRedis = { pausedReason: 'balance' };
    expect([await pause.find(), asked]).toEqual(['balance', []]);
  });
});

it('a pause that a worker makes outlives it, though Redis does not know of it', async () => {
  const world = new LoopWorld();
  const { ledger } = world;
  ledger.enqueue(aPayout('p'));
  const ownJournal = new MemoryJournal('j-one');
  const kept = new KeptPause(makeRuntime({ clock: world.clock, senderLedger: ledger, journal: ownJournal }), {
    judgeResume: () => ({ kind: 'refused', message: 'there is no signed act' }),
  });
  let report: SendReport | undefined;
  world.start({
    authority: { permit: throwing('a paused account asks for no permit') },
    ...{ journal: ownJournal, pause: kept },
    work: async ({ sender }, end) => {
      kept.note('looks like a block');
      report = await sender.send('p', end);
      await untilAborted(end);
    },
  });
  await world.advance(LEASE_MS + 1_000);
  expect(kept.reason).toBe('looks like a block');
  expect(ownJournal.pausedReason).toBe('looks like a block');
  expect(report).toMatchObject({ kind: 'paused', reason: expect.stringContaining('not ended by a signed act') });
});

const words = (...lines: readonly string[]) => lines.flatMap((line) => line.split('|'));

/** One of each language, and those of English whose form differs. */
it.each<[string, readonly string[]]>([
  [
    'a block',
    words(
      'Blocking in effect|BAN|suspend|wallet locked|funds frozen|API disabled|key deactivated|isBlocked',
      'merchant is blacklisted|access restricted|АККАУНТ ЗАБЛОКИРОВАН|Блокировка счёта',
      'Счет временно приостановлен|Средства заморожены|Обліковий запис заблоковано|Рахунок призупинено',
      'Ihr Konto ist gesperrt|Guthaben eingefroren|compte bloque|Fonds gelés|Compte désactivé',
      'Cuenta bloqueada|Fondos congelados|cuenta inhabilitada|Conta suspensa|Conta desativada|账户已被冻结|帳戶已凍結',
      '账户已锁定|服务暂停|Hesabınız engellendi|HESAP ASKIYA ALINDI|Hesap donduruldu|Hesap kilitlendi',
      'Konto zablokowane|Konto zawieszone|Środki zamrożone|Blokada konta',
    ),
  ],
  [
    'a rate limit',
    words(
      'ratelimit|limit exceeded|tooManyRequests|You are sending requests too frequently|Slow down',
      'request limit reached|throttled|quota exceeded|You exceeded the number of requests',
      'Слишком много запросов|Лимит превышен|Слишком частые запросы|Забагато запитів|Перевищено ліміт',
      'Zu viele Anfragen|Limit überschritten|Zu häufige Anfragen|TROP DE REQUETES|Limite dépassée',
      'Demasiadas solicitudes|Límite excedido|Muitas requisições|请求过于频繁|请求过多|超出限制|操作頻繁|Çok fazla istek',
      'Limit aşıldı|Çok sık istek gönderildi|Zbyt wiele żądań|Przekroczono limit|Za dużo zapytań',
    ),
  ],
  [
    'wrong credentials',
    words(
      'Hash does not match|bad hash [hash]|wrong sign|INVALID_API_KEY|wrong secret|key is not valid',
      'Unauthenticated|authentication failed|not authorised|Access denied|Forbidden|unknown platform_id',
      'no such merchant|PLATFORM_NOT_FOUND',
      'Неверная подпись|Ошибка авторизации|Ungültige Signatur|Nicht autorisiert|Accès refusé|Firma no válida',
      'Acceso denegado|Assinatura inválida|签名错误|验签失败|Geçersiz imza|Nieprawidłowy podpis',
    ),
  ],
])('looks like %s', (kind, messages) => {
  for (const message of messages) {
    expect(findBlockedReason(message)).toBe(`the gateway's response looks like ${kind}: ${message}`);
  }
});

it('a fault of one payout looks like nothing of these', () => {
  const messages = words(
    'blockchain is congested|block chain is congested|waiting for the next block|exceeds block gas limit',
    'bank unknown|unlocked wallet needed|corporate limits apply|insufficient balance',
    'maximum amount limit exceeded|internal error|try again later||Недостаточно средств',
    'Превышен лимит суммы|Невірна адреса|Ungültige Adresse|Montant trop faible|Dirección inválida',
    'Valor abaixo do mínimo|地址错误|金额超出限制|Geçersiz adres|Kwota zbyt mała',
  );
  expect(messages.filter((message) => findBlockedReason(message) !== undefined)).toEqual([]);
});

it.each([
  [
    true,
    words(
      'unknown payment_id 999|currency is not supported|No such coin|UNSUPPORTED_CURRENCY|invalidAddress',
      'address is not valid|Recipient not found|address_to must be address:destinationTag for Ripple XRP',
      'Destination tag is required|missing memo|wrong amount|minimum amount is 10|too many decimal places',
      'The amount exceeds the limit',
    ),
  ],
  [
    false,
    words(
      'amount exceeds balance|amount exceeds the daily limit|currency unsupported for this platform',
      'Invalid signature of address_to|withdraw address|unknown token',
    ),
  ],
])('a message names the own data of one payout: %s', (isOwn, messages) => {
  expect(messages.filter((message) => isOfPayout(message) !== isOwn)).toEqual([]);
});

it.each([
  [401, 'wrong credentials'],
  [403, 'a block'],
  [429, 'a rate limit'],
  [400, undefined],
  [500, undefined],
])('what the HTTP status %s says whatever the text is: %s', (status, kind) => {
  const looksLike = "the gateway's response looks like";
  const found = kind && `${looksLike} ${kind}: HTTP ${status}, insufficient balance`;
  expect(findBlockedReason('insufficient balance', status)).toBe(found);
  expect(findBlockedReason('account blocked', status)).toBe(`${looksLike} a block: account blocked`);
});

it.each<[string, WithdrawOutcome, RegExp | undefined]>([
  ['a rejection by its words', { kind: 'rejected', message: 'account blocked', durationMs: 1 }, /a block/],
  ['a rejection by its status', { kind: 'rejected', message: 'no', httpStatus: 429, durationMs: 1 }, /a rate limit/],
  ['any other rejection not', { kind: 'rejected', message: 'no', httpStatus: 400, durationMs: 1 }, undefined],
  [
    'a response that is not the gateway’s by its status',
    { kind: 'unknown', reason: 'HTTP 429: the body is not JSON', httpStatus: 429, durationMs: 1 },
    /looks like a rate limit: HTTP 429: the body is not JSON$/,
  ],
  ['no response at all not', { kind: 'unknown', reason: 'account blocked', durationMs: 1 }, undefined],
  ['what was not sent not', { kind: 'not_sent', reason: 'account blocked' }, undefined],
  ['an acceptance not', { kind: 'accepted', gatewayId: 'blocked', durationMs: 1 }, undefined],
])('of what came of a send: %s', (_name, outcome, expected) => {
  expect(blockedReasonOf({ classifyStop }, outcome) ?? 'none').toMatch(expected ?? /^none$/);
});
