/**
 * Decides from a response to `/withdraw` whether the account may continue. The API lists neither messages nor HTTP
 * statuses of failures (docs/gateway-api.md#errors), so this errs on the side of stopping. A pause costs an operator's
 * check; continuing may cost the account. A problem of one payout (balance, address, amount) is no sign.
 */

const BY_STATUS: Readonly<Record<number, StopSign>> = { 401: 'credentials', 403: 'block', 429: 'rate_limit' };

/**
 * Whether a response is about the account rather than one payout.
 * @param httpStatus - 401, 403 and 429 count whatever the message is
 */
export function findStopSign(message: string, httpStatus?: number): StopSign | undefined {
  return findInWords(` ${fold(message).trim()} `) ?? (httpStatus === undefined ? undefined : BY_STATUS[httpStatus]);
}

/**
 * Whether a rejection names the payout's own data: its currency, address, tag or amount. Such rejections say nothing
 * about the account, and users cause them. In doubt, and in other languages, false: the stricter limit then counts.
 */
export function isOfPayout(message: string): boolean {
  const text = ` ${fold(message).trim()} `;
  const names = PAYOUT_DATA.test(text) && FAULTY.test(text) && !OF_ACCOUNT.test(text);
  return names && findInWords(text) === undefined;
}

/** The API's names of fields, and the words that gateways use for them. */
const PAYOUT_DATA =
  /\b(payment id|currency|coin|address|wallet|recipient|beneficiary|(destination )?tag|memo|amount|decimal (places|digits))\b/;
const FAULTY =
  /\b(invalid|wrong|incorrect|malformed|unknown|unsupported|missing|required|must|minimum|maximum|min|max|below|above|exceeds?|too (small|low|large|big|high|long|short|many)|(less|more|greater|smaller|larger) than|checksum|not (valid|found|supported|exist|correct|match)|no such)\b/;
/** With these, the account or the gateway is at fault. */
const OF_ACCOUNT =
  /\b(balance|funds?|money|insufficient|not enough|liquidity|reserves?|daily|weekly|monthly|per (day|hour|minute)|accounts?|platform|merchant|hash|sign(ed|ing)?|maintenance|temporar(y|ily)|unavailable|internal|later)\b/;

function findInWords(text: string): StopSign | undefined {
  for (const [sign, { english, stems }] of STOP_WORDS) {
    if (english.some((words) => words.test(text)) || holdsAny(text, stems)) return sign;
    if (sign === 'rate_limit' && holdsAny(text, LIMIT_EXCEEDED) && !OF_ONE_PAYOUT.test(text)) return sign;
  }
  return undefined;
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
 * Words by which gateways say that an account may not send, for {@link findStopSign}: lower case, without accents and
 * punctuation. `stems` match anywhere in a word; a space marks a word's beginning or end.
 */

type StopSign = 'block' | 'rate_limit' | 'credentials';

interface StopWords {
  readonly english: readonly RegExp[];
  /** In other languages, one per line. */
  readonly stems: readonly string[];
}

const BLOCK: StopWords = {
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

const RATE_LIMIT: StopWords = {
  english: [
    /\btoo (many|much) (request|call|attempt|quer|withdraw|transaction|operation|connection)/,
    /\brate ?limit|throttl|\bslow down\b|\btoo (often|frequent|fast|quick)|\bflood/,
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

const CREDENTIALS: StopWords = {
  english: [
    /(?<!multi )\bsignature|\bhmac\b|\bauthenticat|\bunauthenticat|\bunauthori|\bauthori[sz]ation|\bnot authori[sz]ed/,
    /\b(access|permission) denied|\bforbidden\b|\bip\b.*\bnot\b.*\b(allowed|white ?listed)/,
    // Not of an address, which has checksums and public keys, and not of a coin called a token.
    /\b(wrong|invalid|bad|incorrect|expired|revoked|missing) (platform )?(sign|key|hash|secret|credential)s?\b/,
    /(?<!(tx|transaction|public) )\b(sign|hash|key|secret|credentials?) ((is|are|was|has|does|do|not|been|check|verification) )*(wrong|invalid|bad|incorrect|expired|revoked|missing|mismatch|match|valid|error|failed)/,
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

const STOP_WORDS: readonly (readonly [StopSign, StopWords])[] = [
  ['block', BLOCK],
  ['rate_limit', RATE_LIMIT],
  ['credentials', CREDENTIALS],
];

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
