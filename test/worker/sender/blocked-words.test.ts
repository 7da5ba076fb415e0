import { expect, it } from '@jest/globals';
import type { WithdrawOutcome } from '../../../src/gateway/gateway.js';
import { isOfPayout } from '../../../src/gateway/stop-sign.js';
import { blockedReasonOf, findBlockedReason } from '../../../src/worker/sender/kept-pause.js';

/** Messages, in a line. */
const words = (line: string): string[] => line.split('|');

/** One of each language, and those of English whose form differs. */
it.each<[string, readonly string[]]>([
  [
    'a block',
    [
      ...words('Account blocked|your IP is on a block list|Blocking in effect|block|BAN|banned for a day|suspend'),
      ...words('wallet locked|funds frozen|API disabled|key deactivated|ACCOUNT_BLOCKED|ACCOUNTBLOCKED|isBlocked'),
      ...words('IPBlocked|userBanned|Account suspension|merchant is blacklisted|blocked address|access restricted'),
      ...words('account blocked: too many requests|account locked: wrong signature'),
      ...words('АККАУНТ ЗАБЛОКИРОВАН|Блокировка счёта|Счет временно приостановлен|Средства заморожены'),
      ...words('Обліковий запис заблоковано|Рахунок призупинено|Ihr Konto ist gesperrt|Guthaben eingefroren'),
      ...words('compte bloque|Votre compte est suspendu|Fonds gelés|Compte désactivé|Cuenta bloqueada'),
      ...words('Fondos congelados|cuenta inhabilitada|Conta suspensa|Conta desativada|账户已被冻结|帳戶已凍結'),
      ...words('账号被封禁|账户已锁定|服务暂停|Hesabınız engellendi|HESAP ASKIYA ALINDI|Hesap donduruldu'),
      ...words('Hesap kilitlendi|Konto zablokowane|Konto zawieszone|Środki zamrożone|Blokada konta'),
    ],
  ],
  [
    'a rate limit',
    [
      ...words('Too Many Requests|rate limit reached|ratelimit|limit exceeded|RATE_LIMIT_EXCEEDED|tooManyRequests'),
      ...words('You are sending requests too frequently|Slow down|request limit reached|throttled|quota exceeded'),
      ...words('You exceeded the number of requests|Слишком много запросов|Превышен лимит запросов|Лимит превышен'),
      ...words('Слишком частые запросы|Забагато запитів|Перевищено ліміт|Zu viele Anfragen|Limit überschritten'),
      ...words('Zu häufige Anfragen|TROP DE REQUETES|Limite dépassée|Demasiadas solicitudes|Límite excedido'),
      ...words('Muitas requisições|请求过于频繁|请求过多|超出限制|操作頻繁|Çok fazla istek|Limit aşıldı'),
      ...words('Çok sık istek gönderildi|Zbyt wiele żądań|Przekroczono limit|Za dużo zapytań'),
    ],
  ],
  [
    'wrong credentials',
    [
      ...words('wrong signature|SIGNATURE_MISMATCH|invalidSignature|Hash does not match|bad hash [hash]|wrong sign'),
      ...words('Incorrect API key|API key expired|INVALID_API_KEY|wrong secret|key is not valid|Unauthenticated'),
      ...words('authentication failed|not authorised|Access denied|Forbidden|unknown platform_id|no such merchant'),
      ...words('PLATFORM_NOT_FOUND|IP is not whitelisted|your IP address is not allowed|Неверная подпись'),
      ...words('Ошибка авторизации|Ungültige Signatur|Nicht autorisiert|Accès refusé|Firma no válida'),
      ...words('Acceso denegado|Assinatura inválida|签名错误|验签失败|Geçersiz imza|Nieprawidłowy podpis'),
    ],
  ],
])('looks like %s', (kind, messages) => {
  for (const message of messages) {
    expect(findBlockedReason(message)).toBe(`the gateway's response looks like ${kind}: ${message}`);
  }
});

it('a fault of one payout looks like nothing of these', () => {
  const messages = [
    ...words('blockchain is congested|block chain is congested|waiting for the next block|exceeds block gas limit'),
    ...words('invalid address checksum|Invalid public key input|unknown wallet|bank unknown|unlocked wallet needed'),
    ...words('the amount exceeds the limit|corporate limits apply|insufficient balance|amount below minimum limit'),
    ...words('maximum amount limit exceeded|daily limit of recipient exceeded|too many decimal places|unknown token'),
    ...words('unknown payment_id|transaction hash not found|no route to the network|internal error|try again later|'),
    ...words('Недостаточно средств|Слишком много знаков после запятой|Превышен лимит суммы|блокчейн недоступен'),
    ...words(
      'Невірна адреса|Ungültige Adresse|Der Betrag ist zu klein|Blockchain nicht erreichbar|Montant trop faible',
    ),
    ...words('chaîne de blocs|Dirección inválida|cadena de bloques|Valor abaixo do mínimo|地址错误|金额低于最小限额'),
    ...words('金额超出限制|区块链拥堵|Geçersiz adres|Niewystarczające środki|Kwota zbyt mała'),
  ];
  expect(messages.filter((message) => findBlockedReason(message) !== undefined)).toEqual([]);
});

it.each([
  [
    true,
    [
      ...words('unknown payment_id 999|Invalid payment_id|currency is not supported|No such coin|UNSUPPORTED_CURRENCY'),
      ...words('wrong address|invalidAddress|address is not valid|invalid address checksum|Recipient not found'),
      ...words('address_to must be address:destinationTag for Ripple XRP|Destination tag is required|missing memo'),
      ...words('wrong amount|amount below minimum limit|minimum amount is 10|too many decimal places'),
      ...words('amount must be greater than 1|The amount exceeds the limit'),
    ],
  ],
  [
    false,
    [
      ...words('insufficient balance|amount exceeds balance|Invalid amount: not enough funds|balance too low'),
      ...words('amount exceeds the daily limit|wallet temporarily unavailable|currency unsupported for this platform'),
      ...words('wrong hash|Invalid signature of address_to|invalid key|address is blocked|rejected|no|'),
      ...words('wallet not found: account suspended|internal error|withdraw address|Неверный адрес|unknown token'),
    ],
  ],
])('a message names the own data of one payout: %s', (isOwn, messages) => {
  expect(messages.filter((message) => isOfPayout(message) !== isOwn)).toEqual([]);
});

it.each([
  [401, 'wrong credentials'],
  [403, 'a block'],
  [429, 'a rate limit'],
])('the HTTP status %s counts whatever the text is, as %s', (status, kind) => {
  expect(findBlockedReason('insufficient balance', status)).toBe(
    `the gateway's response looks like ${kind}: HTTP ${status}, insufficient balance`,
  );
  expect(findBlockedReason('account blocked', status)).toBe(
    "the gateway's response looks like a block: account blocked",
  );
});

it.each([200, 400, 404, 422, 500, 503])('the HTTP status %s says nothing', (status) => {
  expect(findBlockedReason('insufficient balance', status)).toBeUndefined();
  expect(findBlockedReason('account blocked', status)).toMatch(/looks like a block/);
});

const durationMs = 1;
it.each<[string, WithdrawOutcome, RegExp | undefined]>([
  ['a rejection by its words', { kind: 'rejected', message: 'account blocked', durationMs }, /a block/],
  ['a rejection by its status', { kind: 'rejected', message: 'no', httpStatus: 429, durationMs }, /a rate limit/],
  ['any other rejection not', { kind: 'rejected', message: 'no', httpStatus: 400, durationMs }, undefined],
  [
    'a response that is not the gateway’s by its status',
    { kind: 'unknown', reason: 'HTTP 429: the body is not JSON', httpStatus: 429, durationMs },
    /looks like a rate limit: HTTP 429: the body is not JSON$/,
  ],
  ['no response at all not', { kind: 'unknown', reason: 'the account blocked it', durationMs }, undefined],
  ['what was not sent not', { kind: 'not_sent', reason: 'account blocked' }, undefined],
  ['an acceptance not', { kind: 'accepted', txhash: 'blocked', durationMs }, undefined],
])('of what came of a send: %s', (_name, outcome, expected) => {
  expect(blockedReasonOf(outcome) ?? 'none').toMatch(expected ?? /^none$/);
});
