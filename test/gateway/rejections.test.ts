import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { findBlockedReason, findStopSign, isOfBalance, isOfPayout, stopSignOf } from '../../src/gateway/stop-sign.js';

/** Texts that exchanges and payment platforms publish, word for word, each with what it is about. */
const published = JSON.parse(readFileSync(new URL('published-rejections.json', import.meta.url), 'utf8')) as readonly {
  readonly publisher: string;
  readonly message: string;
  readonly class: string | null;
}[];

const SIGNS = ['ip', 'permission', 'block', 'rate_limit', 'credentials'];

/** What the worker does with a message of each class. */
const effectOf = (message: string) => ({
  sign: findStopSign(message),
  isOfPayout: isOfPayout(message),
  isOfBalance: isOfBalance(message),
});

const effectOfClass = (name: string | null) => ({
  sign: SIGNS.includes(name ?? '') ? name : undefined,
  isOfPayout: ['recipient', 'currency', 'data'].includes(name ?? ''),
  isOfBalance: name === 'balance',
});

it.each(published.map((row) => [row.publisher, row.message, row.class] as const))(
  '%s: %s is about %s',
  (_, message, name) => {
    expect(effectOf(message)).toEqual(effectOfClass(name));
  },
);

it.each([
  [
    'recipient',
    'recipient address is blocked|Destination address is blacklisted|beneficiary is sanctioned|address_to is on the block list',
  ],
  [
    'currency',
    'USDT withdrawals are temporarily disabled|Withdrawals of BTC are suspended|TRC20 network is under maintenance|coin is disabled|USDT (TRC20) withdrawals are paused',
  ],
  [
    'allowance',
    'daily limit exceeded|Daily withdrawal limit exceeded|monthly limit reached|превышен суточный лимит|Tageslimit überschritten',
  ],
  [
    'ip',
    'IP is not whitelisted|your IP address is not allowed|This IP 203.0.113.7 is not in the whitelist|Unauthorized IP|IP адрес не разрешён',
  ],
  [
    'permission',
    'no permission|You do not have permission to withdraw|API key does not have withdraw permission|Permission denied|insufficient permissions|没有权限',
  ],
  // In doubt it stops: these name an account, no currency, or a limit that speed may have reached.
  [
    'block',
    'withdrawals are temporarily disabled|ACCOUNT WITHDRAWALS DISABLED|your account is blocked, address frozen|API is disabled|Your IP was banned',
  ],
  ['rate_limit', 'withdrawal limit exceeded|limit exceeded|daily request limit exceeded|Too many withdrawals today'],
  ['balance', 'insufficient balance|Not enough funds|amount exceeds balance|Недостаточно средств|余额不足'],
])('is about %s: %s', (name, messages) => {
  for (const message of messages.split('|'))
    expect([message, effectOf(message)]).toEqual([message, effectOfClass(name)]);
});

it('the reason of a pause gives back its sign, and what a person wrote gives none', () => {
  for (const message of ['IP not whitelisted', 'no permission', 'account blocked', 'bad hash', 'too many requests']) {
    expect([message, stopSignOf(findBlockedReason(message) ?? '')]).toEqual([message, findStopSign(message)]);
  }
  expect(stopSignOf('IP not whitelisted, ticket 7')).toBeUndefined();
});
