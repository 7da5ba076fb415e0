import { LIMIT_EXCEEDED, OF_ONE_PAYOUT, STOP_WORDS, type StopSign } from './stop-words.js';

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
