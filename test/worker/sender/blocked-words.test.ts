import { describe, expect, it } from '@jest/globals';
import type { WithdrawOutcome } from '../../../src/gateway/gateway.js';
import { isOfPayout } from '../../../src/gateway/stop-sign.js';
import { blockedReasonOf, findBlockedReason } from '../../../src/worker/sender/kept-pause.js';

/** Messages, in a line. */
const words = (line: string): string[] => line.split('|');

describe.each<[string, readonly string[]]>([
  [
    'a block',
    [
      ...words('Account blocked|your IP is on a block list|Blocking in effect|block|BAN|banned for a day'),
      ...words('suspend|This account is suspended.|wallet locked|funds frozen|API disabled|key deactivated'),
      ...words('ACCOUNT_BLOCKED|account-blocked|ACCOUNTBLOCKED|accountSuspended|isBlocked|IPBlocked'),
      ...words('account_frozen|userBanned|Account suspension|merchant is blacklisted|blocked address'),
      ...words('account blocked: too many requests|account locked: wrong signature|access restricted'),
      ...words('Аккаунт заблокирован|АККАУНТ ЗАБЛОКИРОВАН|Блокировка счёта|Счет временно приостановлен'),
      ...words('Средства заморожены|Обліковий запис заблоковано|Рахунок призупинено|Кошти заморожені'),
      ...words('Ihr Konto ist gesperrt|Kontosperrung|Konto blockiert|Guthaben eingefroren'),
      ...words('Compte bloqué|compte bloque|Votre compte est suspendu|Fonds gelés|Compte désactivé'),
      ...words('Cuenta bloqueada|Su cuenta ha sido suspendida|Fondos congelados|cuenta inhabilitada'),
      ...words('Conta bloqueada|Conta suspensa|Saldo congelado|Conta desativada'),
      ...words('账户已被冻结|帳戶已凍結|账号被封禁|账户已锁定|服务暂停'),
      ...words('Hesabınız engellendi|HESAP ASKIYA ALINDI|Hesap donduruldu|Hesap kilitlendi'),
      ...words('Konto zablokowane|Konto zawieszone|Środki zamrożone|Blokada konta'),
    ],
  ],
  [
    'a rate limit',
    [
      ...words('Too Many Requests|rate limit reached|rate-limited|ratelimit|limit exceeded|too many calls'),
      ...words('RATE_LIMIT_EXCEEDED|too_many_requests|tooManyRequests|rateLimitExceeded|LIMIT_EXCEEDED'),
      ...words('You are sending requests too frequently|Slow down|request limit reached|throttled'),
      ...words('You exceeded the number of requests|quota exceeded|daily limit exceeded'),
      ...words('Слишком много запросов|Превышен лимит запросов|Слишком частые запросы|Лимит превышен'),
      ...words('Забагато запитів|Перевищено ліміт|Занадто часті запити'),
      ...words('Zu viele Anfragen|Limit überschritten|Anfragelimit erreicht|Zu häufige Anfragen'),
      ...words('Trop de requêtes|TROP DE REQUETES|Limite dépassée'),
      ...words('Demasiadas solicitudes|Límite excedido|Límite de peticiones superado'),
      ...words('Muitas solicitações|Limite excedido|Muitas requisições'),
      ...words('请求过于频繁|请求过多|超出限制|操作頻繁'),
      ...words('Çok fazla istek|Limit aşıldı|Çok sık istek gönderildi'),
      ...words('Zbyt wiele żądań|Przekroczono limit|Za dużo zapytań'),
    ],
  ],
  [
    'wrong credentials',
    [
      ...words('wrong signature|Invalid signature|SIGNATURE_MISMATCH|invalidSignature|signature error'),
      ...words('wrong hash|Hash does not match|invalid hash|bad hash [hash]|hash mismatch|wrong sign'),
      ...words('invalid key|Incorrect API key|API key expired|INVALID_API_KEY|wrong secret|key is not valid'),
      ...words('authentication failed|Unauthenticated|Unauthorized|not authorised|Access denied|Forbidden'),
      ...words('unknown platform_id|platform not found|Platform does not exist|invalid platform'),
      ...words('no such merchant'),
      ...words('PLATFORM_NOT_FOUND|IP is not whitelisted|your IP address is not allowed'),
      ...words('Неверная подпись|Ошибка авторизации|Невірний підпис|Ungültige Signatur|Nicht autorisiert'),
      ...words('Signature invalide|Accès refusé|Firma no válida|Acceso denegado|Assinatura inválida'),
      ...words('签名错误|验签失败|Geçersiz imza|Nieprawidłowy podpis'),
    ],
  ],
])('looks like %s:', (kind, messages) => {
  it.each(messages)('"%s"', (message) => {
    expect(findBlockedReason(message)).toBe(`the gateway's response looks like ${kind}: ${message}`);
  });
});

describe('is a fault of one payout:', () => {
  it.each([
    ...words('blockchain is congested|block chain is congested|waiting for the next block'),
    ...words('exceeds block gas limit'),
    ...words('wrong address|invalid address checksum|Invalid public key input|address is not valid'),
    ...words('unknown wallet'),
    ...words('bank unknown|unlocked wallet needed|the amount exceeds the limit|corporate limits apply'),
    ...words('insufficient balance|INSUFFICIENT_FUNDS|Not enough money|amount below minimum limit'),
    ...words('minimum amount is 10|maximum amount limit exceeded|daily limit of recipient exceeded'),
    ...words('wrong amount'),
    ...words('too many decimal places|invalid destination tag|unknown payment_id|unknown token|invalid token'),
    ...words('invalid txhash|transaction hash not found|no route to the network|internal error'),
    ...words('try again later|'),
    ...words('Недостаточно средств|Неверный адрес|Слишком много знаков после запятой|Превышен лимит суммы'),
    ...words('блокчейн недоступен|Недостатньо коштів|Невірна адреса|Сума нижча за мінімальну'),
    ...words('Guthaben nicht ausreichend|Ungültige Adresse|Der Betrag ist zu klein'),
    ...words('Blockchain nicht erreichbar'),
    ...words('Solde insuffisant|Adresse invalide|Montant trop faible|chaîne de blocs'),
    ...words('Saldo insuficiente|Dirección inválida|cadena de bloques|Endereço inválido'),
    ...words('Valor abaixo do mínimo'),
    ...words('余额不足|地址错误|金额低于最小限额|金额超出限制|区块链拥堵'),
    ...words('Yetersiz bakiye|Geçersiz adres|Niewystarczające środki|Nieprawidłowy adres|Kwota zbyt mała'),
  ])('"%s"', (message) => {
    expect(findBlockedReason(message)).toBeUndefined();
  });
});

describe('names the own data of one payout:', () => {
  it.each([
    ...words('unknown payment_id 999|Invalid payment_id|currency is not supported|No such coin'),
    ...words('UNSUPPORTED_CURRENCY'),
    ...words('wrong address|invalidAddress|address is not valid|invalid address checksum|Recipient not found'),
    ...words('address_to must be address:destinationTag for Ripple XRP|Destination tag is required'),
    ...words('missing memo'),
    ...words('wrong amount|amount below minimum limit|minimum amount is 10|too many decimal places'),
    ...words('amount must be greater than 1|The amount exceeds the limit'),
  ])('"%s"', (message) => {
    expect(isOfPayout(message)).toBe(true);
  });

  it.each([
    ...words('insufficient balance|amount exceeds balance|Invalid amount: not enough funds|balance too low'),
    ...words('amount exceeds the daily limit|wallet temporarily unavailable'),
    ...words('currency unsupported for this platform'),
    ...words('wrong hash|Invalid signature of address_to|invalid key|address is blocked'),
    ...words('wallet not found: account suspended'),
    ...words('internal error|try again later|rejected|no||withdraw address|Неверный адрес|unknown token'),
  ])('not: "%s"', (message) => {
    expect(isOfPayout(message)).toBe(false);
  });
});

describe('the HTTP status', () => {
  it.each([
    [401, 'wrong credentials'],
    [403, 'a block'],
    [429, 'a rate limit'],
  ])('%s counts whatever the text is, as %s', (status, kind) => {
    expect(findBlockedReason('insufficient balance', status)).toBe(
      `the gateway's response looks like ${kind}: HTTP ${status}, insufficient balance`,
    );
    expect(findBlockedReason('account blocked', status)).toBe(
      "the gateway's response looks like a block: account blocked",
    );
  });

  it.each([200, 400, 404, 422, 500, 503])('%s says nothing', (status) => {
    expect(findBlockedReason('insufficient balance', status)).toBeUndefined();
    expect(findBlockedReason('account blocked', status)).toMatch(/looks like a block/);
  });
});

describe('of what came of a send', () => {
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
  ])('%s', (_name, outcome, expected) => {
    if (expected === undefined) expect(blockedReasonOf(outcome)).toBeUndefined();
    else expect(blockedReasonOf(outcome)).toMatch(expected);
  });
});
