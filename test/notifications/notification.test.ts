import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { NOTIFY_SETTINGS } from '../../src/base/settings.js';
import type { Payout } from '../../src/ledger/payout.js';
import { PAYOUT_STATES } from '../../src/ledger/states.js';
import {
  describeEvent,
  linkRunbook,
  parseEventNames,
  type Notification,
} from '../../src/notifications/notification.js';
import { formatRequest, postRequest, sign } from '../../src/notifications/post-request.js';
import { alertRules } from '../told/alerts.js';
import { closeAfterTest, folderOfTest } from '../worker/support/close-after-test.js';
import { startReceiver, type Respond } from './support/receiver.js';

const AT = '2030-01-31T09:00:00.000Z';

const PAYOUT = {
  ...{ payoutId: 'invoice-77', state: 'rejected', final: false, paymentId: 6, amount: '12.5', addressTo: 'TXYZ' },
  ...{ attempt: 1, message: 'wallet <closed> & gone', reference: 'order 5', metadata: { private: true }, history: [] },
} as unknown as Payout;

const REJECTED = describeEvent(
  4242,
  {
    id: 'e17',
    eventId: '17-0',
    type: 'state',
    payoutId: 'invoice-77',
    from: 'sending',
    to: 'rejected',
    final: false,
    at: AT,
  },
  'rejected',
  PAYOUT,
);

it('says what happened to a payout, without its address and metadata', () => {
  expect(REJECTED).toEqual({
    ...{ id: '4242:e17', eventId: '17-0', type: 'rejected', final: false, platformId: 4242, at: AT },
    payout: {
      ...{ payoutId: 'invoice-77', state: 'rejected', final: false, paymentId: 6, amount: '12.5', attempt: 1 },
      ...{ message: 'wallet <closed> & gone', reference: 'order 5' },
    },
    text: 'Account 4242: payout invoice-77 is rejected — 12.5 (payment_id 6) — wallet <closed> & gone → docs/runbooks/rejected.md',
    runbook: 'docs/runbooks/rejected.md',
  });
});

it('names the runbook by its address at the dashboard, if there is one', () => {
  const { rule } = NOTIFY_SETTINGS.notifyDashboardUrl;
  for (const url of ['https://payouts.example.com/', 'payouts.example.com', 'https://u:p@host', 'https://host?x'])
    expect([url, rule.safeParse(url).success]).toEqual([url, false]);
  const address = 'https://payouts.example.com/admin/runbooks/rejected';
  expect(linkRunbook(REJECTED, rule.parse('https://payouts.example.com/admin'))).toMatchObject({
    runbook: address,
    text: expect.stringMatching(RegExp(` → ${address}$`)),
  });
  expect(linkRunbook(REJECTED, undefined)).toBe(REJECTED);
});

it('says what happened to the account, who did it and why', () => {
  const event = { id: 'e18', eventId: '18-0', type: 'paused', at: AT, by: 'alice', reason: 'ticket 7' } as const;
  expect(describeEvent(4242, event, 'paused', undefined)).toEqual({
    ...{ id: '4242:e18', eventId: '18-0', type: 'paused', platformId: 4242, at: AT, by: 'alice', reason: 'ticket 7' },
    text: 'Account 4242 is Paused: nothing is sent until an operator resumes it — ticket 7 (alice) → docs/runbooks/paused.md',
    runbook: 'docs/runbooks/paused.md',
  });
  const head = {
    id: 'e19',
    eventId: '19-0',
    type: 'journal_head',
    at: AT,
    hash: 'ab12',
    reason: 'journal c0ffee',
  } as const;
  const said = describeEvent(4242, head, 'journal_head', undefined);
  expect(said).toMatchObject({ hash: 'ab12', text: expect.stringMatching(/4242 .* — ab12 — journal c0ffee/) });
});

it('names the currency where the gateway told its name, and no message of a later state', () => {
  const event = { id: 'e17', eventId: '17-0', type: 'state', payoutId: 'invoice-77', to: 'queued', at: AT } as const;
  const currencies = [{ paymentId: 6, name: 'USDT (TRC-20)', usdRate: undefined }];
  const { text } = describeEvent(4242, event, 'queued', PAYOUT, currencies);
  expect(text).toBe('Account 4242: payout invoice-77 is queued — 12.5 USDT (TRC-20)');
});

it('says of a payout that is held why, and that someone altered it', () => {
  const held = { kind: 'signature', reason: 'wrong', message: 'its amount was altered' } as const;
  const payout = { ...PAYOUT, state: 'held', message: 'of an earlier attempt', held } as const;
  const of = { id: 'e20', eventId: '20-0', payoutId: 'invoice-77', to: 'held', at: AT } as const;
  const notification = describeEvent(4242, { ...of, type: 'state', from: 'queued' }, 'held', payout);
  expect(notification.payout).toMatchObject({ state: 'held', held });
  expect(notification.text).toMatch(/invoice-77 is held — .* — its amount was altered → docs\/runbooks\/held\.md$/);
  const reason = 'wrong: its amount was altered';
  expect(describeEvent(4242, { ...of, type: 'tampering', reason }, 'tampering', payout).text).toMatch(
    /has altered what is in Redis .* — wrong: its amount was altered → docs\/runbooks\/tampering\.md$/,
  );
});

it('names the runbook of the alert about the same', () => {
  for (const [type, alert] of [
    ['objection', 'PayoutsObjection'],
    ['balance_dropped', 'PayoutsBalanceDropped'],
    ['late_payment', 'PayoutsPaidLate'],
    ['other_payment', 'PayoutsOtherPayment'],
    ['unknown', 'PayoutsUnknown'],
    ['failed', 'PayoutsFailed'],
  ] as const) {
    const event = { id: 'e19', eventId: '19-0', type: 'paused', at: AT } as const;
    const rule = alertRules.find((each) => each.alert === alert);
    expect(describeEvent(4242, event, type, undefined).runbook).toBe(rule?.annotations.runbook);
  }
});

it('NOTIFY_EVENTS names states and events; `all` is each but journal heads', () => {
  expect([...parseEventNames('paused, failed')]).toEqual(['failed', 'paused']);
  expect([...parseEventNames('all')]).toEqual(expect.arrayContaining([...PAYOUT_STATES, 'paused', 'late_payment']));
  expect(parseEventNames('all').has('journal_head')).toBe(false);
  expect(parseEventNames('all,journal_head').has('journal_head')).toBe(true);
  expect(() => parseEventNames(NOTIFY_SETTINGS.notifyEvents.default)).not.toThrow();
  for (const text of ['', 'paid', 'failed,paid', 'failed,'])
    expect(() => parseEventNames(text)).toThrow(/NOTIFY_EVENTS: must name events.* failed.*\(got /);
});

it('a request is signed over time and body, by HMAC-SHA256', () => {
  const target = { url: 'https://x.example', format: 'json', secret: 'k' } as const;
  const { headers, body } = formatRequest(target, REJECTED, 9);
  expect(JSON.parse(body) as Notification).toEqual(REJECTED);
  expect(headers).toEqual({
    'content-type': 'application/json; charset=utf-8',
    'payouts-notification-id': '4242:e17',
    'payouts-signature': `t=9,v1=${sign('k', 9, body)}`,
  });
  // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
  const known = '49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686';
  expect(sign('secret', 1_700_000_000, '{"a":1}')).toBe(known);
});

it('a request is a line of text for Slack, and a message for Telegram', () => {
  const bodyOf = (format: 'slack' | 'telegram', url: string) =>
    JSON.parse(formatRequest({ url, format }, REJECTED, 1).body) as unknown;
  const text = REJECTED.text.replace('<closed> &', '&lt;closed&gt; &amp;');
  expect(bodyOf('slack', 'https://x.example')).toEqual({ text });
  expect(bodyOf('telegram', 'https://api.telegram.org/bot1:t/sendMessage?chat_id=-100')).toEqual({
    ...{ chat_id: '-100', text: REJECTED.text, disable_web_page_preview: true },
  });
});

const REQUEST = { headers: { 'payouts-signature': 't=1,v1=x' }, body: '{"a":1}' };

/** Posts it to a receiver that responds so. @returns what it received, too */
async function post(respond: Respond, timeoutMs = 10_000) {
  const receiver = closeAfterTest(await startReceiver());
  receiver.respond = respond;
  const result = await postRequest(`${receiver.url}/hook?token=hunter2`, REQUEST, timeoutMs);
  return { result, received: receiver.received };
}

it('a request is delivered with any 2xx, as it was made', async () => {
  const { result, received } = await post((_received, response) => void response.writeHead(202).end('thanks'));
  expect(result).toEqual({ kind: 'delivered' });
  expect(received).toMatchObject([{ path: '/hook?token=hunter2', ...REQUEST }]);
});

const HANGS = { reason: 'no complete response within 500 ms' };
const responding =
  (status: number, headers = {}): Respond =>
  (_received, response) =>
    void response.writeHead(status, headers).end('hunter2');
it.each<[string, Respond, object]>([
  ['fails', responding(500), { reason: 'the receiver responded with HTTP 500', isRefused: undefined }],
  ['refuses', responding(401), { reason: 'the receiver responded with HTTP 401', isRefused: true }],
  ['takes too long to read', responding(408), { isRefused: undefined }],
  ['redirects', responding(307, { location: '/' }), { reason: 'the receiver responded with HTTP 307' }],
  ['is busy', responding(429, { 'retry-after': '7' }), { retryAfterMs: 7_000 }],
  ['hangs', () => undefined, HANGS],
  ['hangs in the middle', (_received, response) => void response.writeHead(200).write('a'), HANGS],
  ['hangs up', (_received, response) => response.destroy(), { reason: 'no response: UND_ERR_SOCKET' }],
])('a request is not delivered where the receiver %s', async (_, respond, failure) => {
  const { result, received } = await post(respond, failure === HANGS ? 500 : undefined);
  expect({ isRefused: undefined, ...result }).toMatchObject({ kind: 'failed', ...failure });
  expect(JSON.stringify(result)).not.toContain('hunter2');
  expect(received).toHaveLength(1);
});

const page = readFileSync(new URL('../../docs/notifications.md', import.meta.url), 'utf8');

function block(language: string) {
  const [, text] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page) ?? [];
  if (text === undefined) throw new Error(`docs/notifications.md has no block of ${language}`);
  return text;
}

const SECRET = 'hunter2-0123456789';
const NOW = 1_900_000_000;
const example = JSON.parse(block('json')) as Notification;
const { headers, body } = formatRequest({ url: 'https://x.example', format: 'json', secret: SECRET }, example, NOW);
const signature = headers['payouts-signature'] ?? '';

/** Whether it is genuine: body, header, secret, now. */
const CASES: readonly (readonly [boolean, string, string, string, number])[] = [
  [true, body, signature, SECRET, NOW],
  [true, body, signature, SECRET, NOW + 300],
  [false, body, signature, SECRET, NOW + 301],
  [false, body, signature, SECRET, NOW - 301],
  [false, `${body} `, signature, SECRET, NOW],
  [false, body, signature, 'another-secret', NOW],
  [false, body, signature.replace(`t=${NOW}`, `t=${NOW + 1}`), SECRET, NOW],
  [false, body, signature.slice(0, -1), SECRET, NOW],
  [false, body, '', SECRET, NOW],
  [false, body, `${signature}\n`, SECRET, NOW],
];

const LANGUAGES = [
  {
    language: 'ts',
    file: 'verify.mts',
    command: [process.execPath, '--import', 'tsx'],
    call: `import { readFileSync } from 'node:fs';
const cases: [string, string, string, number][] = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(cases.map(([body, header, secret, now]) => isGenuine(body, header, secret, now))));`,
  },
  {
    language: 'python',
    file: 'verify.py',
    command: ['python3'],
    call: `import json, sys
print(json.dumps([is_genuine(b.encode(), h, s.encode(), n) for b, h, s, n in json.load(sys.stdin)]))`,
  },
  {
    language: 'php',
    file: 'verify.php',
    command: ['php'],
    call: `echo json_encode(array_map(fn($c) => is_genuine($c[0], $c[1], $c[2], $c[3]), json_decode(file_get_contents('php://stdin'))));`,
  },
];

for (const { language, file, command, call } of LANGUAGES) {
  const [program = '', ...args] = command;
  const test = spawnSync(program, ['--version']).status === 0 ? it : it.skip;

  test(`the example in ${language} accepts what is genuine and recent, and nothing else`, async () => {
    const path = join(await folderOfTest('verify'), file);
    await writeFile(path, `${block(language)}\n${call}\n`);
    const input = JSON.stringify(CASES.map(([, ...each]) => each));
    const { status, stdout, stderr } = spawnSync(program, [...args, path], { input, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(CASES.map(([isGenuine]) => isGenuine));
  });
}

it('the example knows a repeated notification, and refuses one under another id, too old or altered', async () => {
  const path = join(await folderOfTest('replay'), 'replay.mts');
  const call = `import { readFileSync } from 'node:fs';
const cases: [string, string, string, string, number][] = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(cases.map((each) => genuineId(...each) ?? null)));`;
  await writeFile(path, `${block('ts')}\n${call}\n`);
  const text = JSON.stringify({ id: 'a#1' });
  const signedAt = (time: number): string => `t=${time},v1=${sign(SECRET, time, text)}`;
  const signed = signedAt(NOW);
  const input = JSON.stringify([
    [text, signed, 'a#1', SECRET, NOW],
    [text, signedAt(NOW + 60), 'a#1', SECRET, NOW + 60],
    [text, signed, 'b#1', SECRET, NOW],
    [text, signed, 'a#1', SECRET, NOW + 301],
    [JSON.stringify({ id: 'b#1' }), signed, 'b#1', SECRET, NOW],
  ]);
  const { stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', path], { input, encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual(['a#1', 'a#1', null, null, null]);
});

it('docs/notifications.md names events and headers that exist', () => {
  expect(Object.keys(headers).sort()).toEqual(
    expect.arrayContaining([...page.matchAll(/^\| `(payouts-[a-z-]+)`/gm)].map(([, name]) => name)),
  );
  const [, named = ''] = /`NOTIFY_EVENTS` chooses: (.*?)The default/s.exec(page) ?? [];
  const names = [...named.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
  expect(names.length).toBeGreaterThan(7);
  expect(() => parseEventNames(names.join(','))).not.toThrow();
});
