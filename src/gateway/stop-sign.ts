/**
 * Decides from a response to `/withdraw` whether the account may continue. The API lists neither messages nor HTTP
 * statuses of failures (docs/gateway-api-v1.md#errors), so this errs on the side of stopping. A pause costs an operator's
 * check; continuing may cost the account. A problem of one payout (balance, address, amount) is no sign.
 *
 * {@link REJECTIONS} has the classes; docs/gateway-facts.md says what each does.
 */

const BY_STATUS: Readonly<Record<number, StopSign>> = { 401: 'credentials', 403: 'block', 429: 'rate_limit' };

/** As the reason of a pause has it, after {@link SAYS}. */
const DESCRIPTIONS: Readonly<Record<StopSign, string>> = {
  ip: 'an IP address that is not listed',
  permission: 'a missing permission',
  block: 'a block',
  rate_limit: 'a rate limit',
  credentials: 'wrong credentials',
};

const SAYS = "the gateway's response looks like ";

/**
 * Whether a response is about the account rather than one payout.
 * @param httpStatus - 401, 403 and 429 count whatever the message is
 */
export function findStopSign(message: string, httpStatus?: number): StopSign | undefined {
  const found = classify(message);
  const sign = found !== undefined && isStopSign(found) ? found : undefined;
  return sign ?? (httpStatus === undefined ? undefined : BY_STATUS[httpStatus]);
}

/** @returns why the account must be paused, or undefined if the response is about this payout only */
export function findBlockedReason(message: string, httpStatus?: number): string | undefined {
  const sign = findStopSign(message, httpStatus);
  if (sign === undefined) return undefined;
  const byStatus = findStopSign(message) === undefined && httpStatus !== undefined;
  const said = byStatus && !message.startsWith('HTTP ') ? `HTTP ${httpStatus}, ${message}` : message;
  return describeStop(sign, said);
}

/** What a response that is no acceptance says about the account. */
export interface StopClass {
  /**
   * Why the account must be paused; undefined if the response is about this payout only. {@link describeStop} makes one
   * of which the headline knows the kind.
   */
  readonly blockedReason: string | undefined;
  /** A rejection names the payout's own data. Such rejections say nothing about the account, and users cause them. */
  readonly isOfPayout: boolean;
}

/** @param httpStatus - undefined if it is not known any more */
export function classifyStop(message: string, httpStatus?: number): StopClass {
  return { blockedReason: findBlockedReason(message, httpStatus), isOfPayout: isOfPayout(message) };
}

/** The reason of a pause. @param said - the gateway's words */
export function describeStop(sign: StopSign, said: string): string {
  return `${SAYS}${DESCRIPTIONS[sign]}: ${said}`;
}

/** The sign that {@link describeStop} made the reason of a pause from. */
export function stopSignOf(pausedReason: string): StopSign | undefined {
  const signs = Object.entries(DESCRIPTIONS) as [StopSign, string][];
  return signs.find(([, words]) => pausedReason.startsWith(`${SAYS}${words}: `))?.[0];
}

/**
 * Whether a rejection names the payout's own data: its currency, address, tag or amount. Such rejections say nothing
 * about the account, and users cause them. In doubt, and in other languages, false: the stricter limit then counts.
 */
export function isOfPayout(message: string): boolean {
  const text = ` ${fold(message).trim()} `;
  const found = classify(message);
  if (found === 'recipient' || found === 'currency') return true;
  const names = PAYOUT_DATA.test(text) && FAULTY.test(text) && !OF_ACCOUNT.test(text);
  return names && found === undefined;
}

/** Whether a rejection says that the account has too little money. */
export function isOfBalance(message: string): boolean {
  return classify(message) === 'balance';
}

/** The API's names of fields, and the words that gateways use for them. */
const PAYOUT_DATA =
  /\b(payment id|currency|coin|address|wallet|recipient|beneficiary|(destination )?tag|memo|amount|decimal (places|digits))\b/;
const FAULTY =
  /\b(invalid|wrong|incorrect|malformed|unknown|unsupported|missing|required|must|minimum|maximum|min|max|below|above|exceeds?|too (small|low|large|big|high|long|short|many)|(less|more|greater|smaller|larger) than|checksum|not (valid|found|supported|exist|correct|match)|no such)\b/;
/** With these, the account or the gateway is at fault. */
const OF_ACCOUNT =
  /\b(balance|funds?|money|insufficient|not enough|liquidity|reserves?|daily|weekly|monthly|per (day|hour|minute)|accounts?|platform|merchant|hash|sign(ed|ing)?|maintenance|temporar(y|ily)|unavailable|internal|later)\b/;

/** The first class of {@link REJECTIONS} that has the words. */
function classify(message: string): Rejection | undefined {
  const text = ` ${fold(message).trim()} `;
  for (const [rejection, { english, stems = [], unless, also }] of REJECTIONS) {
    const isFound = english.some((words) => words.test(text)) || holdsAny(text, stems) || also?.(text, message);
    if (isFound && !unless?.test(text)) return rejection;
  }
  return undefined;
}

function isStopSign(rejection: Rejection): rejection is StopSign {
  return rejection in DESCRIPTIONS;
}

function holdsAny(text: string, stems: readonly string[]): boolean {
  return stems.some((stem) => text.includes(fold(stem)));
}

/** Normalises the spelling: `ACCOUNT_BLOCKED`, `accountBlocked` and `Account blocked!` are the same words. */
function fold(text: string): string {
  return text
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/[ıłß]/g, (letter) => ({ ı: 'i', ł: 'l' })[letter] ?? 'ss')
    .replace(/[^\p{L}\p{N}]+/gu, ' ');
}

/**
 * What a rejection is about. The first pause the account at once. Of the others `recipient` and `currency` count as the
 * payout's own data, `allowance` and `balance` towards the stricter limit.
 */
type Rejection = StopSign | 'recipient' | 'currency' | 'allowance' | 'balance';

/** What is wrong with the account. */
export type StopSign = 'ip' | 'permission' | 'block' | 'rate_limit' | 'credentials';

/**
 * Words by which gateways say it: lower case, without accents and punctuation. `stems` match anywhere in a word; a space
 * marks a word's beginning or end.
 */
interface Words {
  readonly english: readonly RegExp[];
  /** In other languages, one per line. */
  readonly stems?: readonly string[];
  /** With these it is another class. */
  readonly unless?: RegExp;
  readonly also?: (text: string, message: string) => boolean;
}

/** Who gets the money, not who sends it. */
const RECIPIENT: Words = {
  english: [
    /\b(?<!ip )(address|recipient|receiver|beneficiary|destination|payee)\b.*\b(block(ed| ?list(ed)?)|black ?list(ed)?|sanction(ed|s)?|frozen|banned|restricted|(at|high) risk|risky|prohibited|not (in|on|part of) (the |your )?(address )?(white|allow) ?list|not (white|allow) ?listed)\b/,
    /\b(block(ed|listed)?|black ?listed|sanctioned|high risk|risky|prohibited) (\w+ )?(address|recipient|receiver|beneficiary|destination)\b/,
  ],
  unless:
    /\b(your|this|my|account s) (account|ip|platform|merchant)\b|\b(account|merchant|platform|user) (is|was|has|have|been)\b|\bip\b/,
};

const SUSPENDED =
  /\b(suspend(ed)?|disabled|closed|paused|halted|unavailable|not (available|transferable|enabled|open)|(under|in|for) maintenance|maintenance)\b/;

/** One currency or network, not all withdrawals. */
const CURRENCY: Words = {
  english: [],
  unless: /\b(accounts?|merchants?|users?|platform (is|was)|your (withdrawal|api|key))\b/,
  also: (text, message) =>
    SUSPENDED.test(text) &&
    /\b(withdraw|transfer|payout|pay|wallet|network|chain|coin|currency|token|crypto)/.test(text) &&
    (/\b(this|the|selected|for) (coin|currency|token|crypto|asset|network|chain)\b|\b(coin|currency|token|network|chain) (is|are|was|has)\b/.test(
      text,
    ) ||
      namesTicker(message)),
};

/** `USDT withdrawals …`, `withdrawals of USDT …`: capitals beside small letters. In a text of capitals none stands out. */
const TICKER =
  /\b([A-Z][A-Z0-9]{2,9})\b(?:[\s\-_/]*\(?[A-Z0-9-]+\)?)?\s+(?:withdraw|transfer|wallet|payout|network|deposit|is\b|are\b)|(?:ithdrawals?|ransfers?|ayouts?) (?:of|for|in) ([A-Z][A-Z0-9]{2,9})\b/;
const NO_TICKER = /^(API|KYC|AML|VIP|ALL|HTTP|ERROR|USER|CODE|NOT|THE|YOUR|KEY|ACCOUNT)$/;

function namesTicker(message: string): boolean {
  const [, before, after] = TICKER.exec(message) ?? [];
  const ticker = before ?? after;
  return ticker !== undefined && /\p{Ll}/u.test(message) && !NO_TICKER.test(ticker);
}

/** A sum that the account may send in a day or longer. Nothing sent faster caused that. */
const ALLOWANCE: Words = {
  english: [
    /\b(daily|weekly|monthly|24 ?h(ours?)?|per (day|week|month)|a day)\b.*\b(limits?|quota|allowance|cap)\b|\b(limits?|quota)\b.*\b(daily|weekly|monthly|per (day|week|month)|verification level|kyc)\b/,
  ],
  stems: [
    ...['суточный лимит', 'дневной лимит', 'лимит на сутки', 'добовий ліміт', 'денний ліміт', 'tageslimit'],
    ...['limite journali', 'limite quotidien', 'límite diario', 'limite diari', '每日限额', '日限额', 'günlük limit'],
    'limit dzienn',
  ],
  unless: /\b(requests?|calls?|queries|frequen\w*|times|rate|per (second|minute|hour))\b|запрос|запит|anfrage/,
};

const BALANCE: Words = {
  english: [
    /\b(insufficient|unsufficient|not enough|low|no) (\w+ )?(balance|funds?|money|assets)\b|\b(exceeds?|greater than|more than|below|over) (\w+ ){0,2}(balance|funds)\b|\benough (money|funds|balance)\b/,
    /\b(balance|funds) (is |are )?(insufficient|not enough|too (low|small))\b/,
  ],
  stems: [
    ...['недостаточно средств', 'недостаточно баланс', 'недостатньо кошт', 'nicht genug guthaben', 'unzureichend'],
    ...[
      'solde insuffisant',
      'fonds insuffisants',
      'saldo insuficiente',
      'fondos insuficientes',
      '余额不足',
      '餘額不足',
    ],
    ...['yetersiz bakiye', 'bakiye yetersiz', 'niewystarczając'],
  ],
};

/** The gateway knows the key, but not the host that uses it. */
const IP: Words = {
  english: [
    /\bips?\b.*\b(not|isn t|aren t|needs? to be) (\w+ ){0,4}(white ?list(ed)?|allow ?list(ed)?|allowed|listed|authori[sz]ed|permitted|trusted|registered|bound|recogni[sz]ed)\b/,
    /\bips?( address(es)?)? (is |was )?(prohibited|forbidden|denied|unauthori[sz]ed|invalid|mismatch|does not match|not match)\b|\b(unauthori[sz]ed|unknown|untrusted|invalid|disallowed) ips?\b/,
  ],
  stems: [
    'ip адрес не',
    'ip не в белом',
    'ip адреса не',
    'ip адрес нет',
    'ip不在白名单',
    'ip 不在白名单',
    '非法ip',
    'ip 未授权',
  ],
  unless: /\b(banned|too (many|much|frequent\w*))\b/,
};

const PERMISSION: Words = {
  english: [
    /\b(no|lacks?|missing|insufficient|without|required?|requires|enough|have|has|not) (the |a |any )?(\w+ ){0,2}(permissions?|privileges?|authority|rights)\b/,
    /\bpermissions? (is |are )?(denied|missing|required|not|insufficient)\b|\b(key|token) (\w+ ){0,3}not (allowed|permitted|enabled) (to|for)\b/,
  ],
  stems: [
    ...['нет прав', 'недостаточно прав', 'немає прав', 'keine berechtigung', 'pas la permission', 'sin permiso'],
    ...['sem permissão', '没有权限', '沒有權限', '权限不足', 'yetkiniz yok', 'brak uprawnień'],
  ],
  unless: /\bip or permissions\b/,
};

const BLOCK: Words = {
  english: [
    /(?<!un)block(ed|ing)\b|\bblock ?list|\bblack ?list/,
    // Of an account, not of a chain.
    /(?<!(next|new|per|gas) )\bblock\b(?! (chain|number|height|hash|time|gas|explorer|confirmation))/,
    /\bbann?(ed)?\b|suspend|suspension|\blocked\b|\bfrozen|\bfreez|disabled|deactivat|terminated|\brestricted/,
  ],
  stems: [
    ...['заблокир', 'блокировк', 'приостановл', 'заморож', 'забанен', 'отключен', 'деактивир'],
    ...['заблокован', 'блокуван', 'призупинен', 'вимкнен', 'деактивов'],
    ...['gesperrt', 'sperrung', 'blockiert', 'eingefroren', 'suspendiert', 'deaktiviert', 'ausgesetzt'],
    ...[
      ' bloqué ',
      ' bloquée',
      'fonds bloqués',
      'suspendu',
      ' gelé ',
      ' gelés ',
      ' gelée',
      'désactivé',
      'verrouill',
      ' banni ',
    ],
    ...['bloquead', 'suspendid', 'congelad', 'deshabilitad', 'inhabilitad', 'desactivad', 'banead'],
    ...['suspens', 'desativad', ' banid'],
    ...[
      '冻结',
      '凍結',
      '封禁',
      '封锁',
      '封鎖',
      '被封',
      '封号',
      '禁用',
      '停用',
      '暂停',
      '暫停',
      '锁定',
      '鎖定',
      '黑名单',
    ],
    ...['engellen', 'askıya alın', 'dondurul', ' bloke ', 'kilitlen', 'yasaklan', 'devre dışı'],
    ...['zablokow', 'blokad', 'zawiesz', 'zamroż', 'wyłączon', 'dezaktyw', 'zbanow'],
  ],
};

const RATE_LIMIT: Words = {
  english: [
    /\btoo (many|much) (request|call|attempt|quer|withdraw|transaction|operation|connection)/,
    /\brate ?limit|throttl|\bslow down\b|\btoo (often|frequent|fast|quick)|\bflood/,
    /\b(request|call) frequency\b/,
    /\b(request|call|frequency|query)s? (limit|quota)\b|\bquota exceeded|\bone request per second/,
    /\bexceed(s|ed|ing)? (the |your )?((maximum |allowed )?number of )?(request|call|rate|frequency)/,
  ],
  stems: [
    ...['слишком много запрос', 'слишком много попыт', 'слишком много обращ', 'слишком част', 'лимит запрос'],
    ...['превышено количество запрос', 'превышено число запрос', 'превышена частот'],
    ...['забагато запит', 'занадто багато запит', 'надто багато запит', 'занадто част', 'ліміт запит'],
    ...['zu viele anfragen', 'zu viele aufrufe', 'zu viele versuche', 'zu häufig', 'zu haeufig', 'anfragelimit'],
    ...['trop de requêtes', 'trop de demandes', 'trop de tentatives', 'trop fréquent', 'limite de requêtes'],
    ...['demasiadas solicitudes', 'demasiadas peticiones', 'demasiadas llamadas', 'demasiados intentos'],
    ...['límite de solicitudes', 'límite de peticiones'],
    ...['muitas solicitações', 'muitas requisições', 'muitas tentativas', 'muitos pedidos', 'limite de requisições'],
    ...['请求过多', '請求過多', '请求太多', '频繁', '頻繁', '请求次数', '限流', '频率'],
    ...['çok fazla istek', 'çok fazla talep', 'çok fazla deneme', 'çok sık', 'istek limiti', 'istek sınırı'],
    ...['zbyt wiele żądań', 'zbyt wiele zapytań', 'zbyt wiele prób', 'za dużo zapytań', 'za dużo żądań', 'zbyt częst'],
  ],
};

const CREDENTIALS: Words = {
  english: [
    /(?<!multi )\bsignature|\bhmac\b|\bauthenticat|\bunauthenticat|\bunauthori|\bauthori[sz]ation|\bnot authori[sz]ed/,
    /\baccess denied|\bforbidden\b/,
    // Not of an address, which has checksums and public keys, and not of a coin called a token.
    /\b(wrong|invalid|bad|incorrect|expired|revoked|missing) (platform )?(sign|key|hash|secret|credential)s?\b/,
    /(?<!(tx|transaction|public) )\b(sign|hash|key|secret|credentials?) ((is|are|was|has|does|doesn|isn|t|do|not|been|check|verification) )*(wrong|invalid|bad|incorrect|expired|revoked|missing|mismatch|match|valid|error|failed)/,
    /\b(api|secret|access|private) key\b|\b(api|access|auth) token\b/,
    /\b(wrong|invalid|unknown|incorrect|no such) (platform|merchant|project|shop)\b/,
    /\b(platform|merchant|project|shop)( id)? ((is|was|does|not) )*(found|exist|unknown|invalid|wrong)/,
  ],
  stems: [
    ...['подпис', 'авториз', 'аутентиф', 'неверный ключ', 'доступ запрещ', 'платформа не найден'],
    ...['підпис', 'автентиф', 'невірний ключ', 'доступ заборон', 'платформу не знайден'],
    ...[
      'signatur ',
      'signaturfehler',
      'nicht autorisiert',
      'authentifizier',
      'zugriff verweigert',
      'ungültiger schlüssel',
    ],
    ...['authentifi', 'non autorisé', 'accès refusé', 'clé invalide'],
    ...['firma inválida', 'firma incorrecta', 'firma no válida', 'autenticaci', 'no autorizad', 'acceso denegado'],
    ...['assinatura', 'autenticaç', 'não autorizad', 'acesso negado', 'chave inválida'],
    ...['签名', '簽名', '验签', '认证', '認證', '鉴权', '未授权', '密钥'],
    ...[' imza', 'kimlik doğrula', 'yetkisiz'],
    ...['podpis', 'uwierzytelni', 'autoryzac', 'nieautoryzow'],
  ],
};

/** A limit of calls, unless the message names another limit. */
const LIMIT_EXCEEDED: readonly string[] = [
  ...['limit exceeded', 'limits exceeded', 'limit has been exceeded', 'limit is exceeded', 'exceeded limit'],
  ...['превышен лимит', 'лимит превышен', 'перевищено ліміт', 'ліміт перевищено'],
  ...['limit überschritten', 'limit ueberschritten', 'limite dépassée', 'limite excedid', 'límite superad'],
  ...['超出限制', '超过限制', '超限', 'limit aşıldı', 'limiti aşıldı', 'sınırı aşıldı'],
  ...['limit przekroczon', 'przekroczono limit', 'przekroczony limit'],
];

/** With these, an exceeded limit concerns one payout. */
const OF_ONE_PAYOUT =
  /\b(amount|minimum|maximum|min|max|recipient|receiver|beneficiary|gas|betrag|montant|importe|monto|valor|tutar|kwota)\b|сумм|сума|суми|получател|одержувач|金额|金額/;

/** In this order: the first that has the words counts. */
const REJECTIONS: readonly (readonly [Rejection, Words])[] = [
  ['recipient', RECIPIENT],
  ['currency', CURRENCY],
  ['allowance', ALLOWANCE],
  ['ip', IP],
  ['permission', PERMISSION],
  ['block', BLOCK],
  ['rate_limit', RATE_LIMIT],
  ['rate_limit', { english: [], stems: LIMIT_EXCEEDED, unless: OF_ONE_PAYOUT }],
  ['credentials', CREDENTIALS],
  ['balance', BALANCE],
];
