import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../src/base/clock.js';
import type { Hold } from '../../src/ledger/payout.js';
import { writeGatewayFacts } from '../../src/ledger/reads/gateway-facts.js';
import { writePolicyReport, type PolicyReport } from '../../src/ledger/reads/policy-report.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { openApprovalRig, RULE, type ApprovalRig } from '../cli/support/approval-rig.js';
import type { KeyEntry } from '../control/support/keys.js';
import { begin, NO_BREAKER, nextBegin, takeLease } from '../ledger/contract/ledger-rig.js';
import { newPlatformId } from '../support/account.js';
import { basicAuth, injectedIn, openDashboard, type RunningDashboard } from './support/running-dashboard.js';

/** Signatures, approvals and rules: the one write of the dashboard, and what pages say of them. */

type Body = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

const PASSWORD = 'a long password';
const JSON_POST = { authorization: basicAuth('payouts', PASSWORD), 'content-type': 'application/json' };
const EVIL = '<img src=x onerror=alert(1)>';

let rig: ApprovalRig;
let sender: RedisSenderLedger;
let platformId: number;
let keysFile: string;
let policyFiles: ReadonlyMap<number, string>;
/** Of one account: with a password and a keyring, with a keyring and a policy, with a keyring, and with nothing. */
let desk: RunningDashboard;
let full: RunningDashboard;
let keyed: RunningDashboard;
let plain: RunningDashboard;
const opened: RunningDashboard[] = [];

beforeAll(async () => {
  rig = await openApprovalRig();
  const { connection } = rig.account.ledger;
  ({ platformId } = connection);
  sender = new RedisSenderLedger(connection, 'reply');
  keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
  const policyFile = `${rig.keys.dir}/policy.yaml`;
  const policy = `version: 1
platformId: "${platformId}"
default: send
groups: { finance: [Ann, Bob] }
rules:
  - { name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: hour, when: { paymentId: ["7"] }, cap: { amount: "100", within: 1h }, over: wait }
  - { name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }
`;
  await writeFile(policyFile, policy, { mode: 0o600 });
  policyFiles = new Map([[platformId, policyFile]]);
  desk = await start({ keysFile, password: PASSWORD });
  full = await start({ keysFile, policyFiles });
  keyed = await start({ keysFile });
  plain = await start({});
  const currencies = [{ paymentId: 7, name: 'USDT', usdRate: '1.001' }];
  await writeGatewayFacts(connection, { currencies, currenciesAt: 1 });
});

afterAll(async () => {
  await Promise.all(opened.map(async (each) => each.close()));
  await rig.close();
});

/** @param aheadMs - of the dashboard's clock */
async function start(options: Parameters<typeof openDashboard>[1], aheadMs = 0): Promise<RunningDashboard> {
  const clock = { ...systemClock, advance: () => undefined, wallNow: () => Date.now() + aheadMs };
  const started = await openDashboard({ platformId, clock }, options);
  opened.push(started);
  return started;
}

/** What `payouts approve --offline` prints. */
async function sign(payoutId: string, key: 'ann' | 'bob', ...args: string[]): Promise<Body> {
  const signer = key === 'bob' ? `ssh:${rig.files[key]}` : rig.files[key];
  const printed = await rig.run('approve', payoutId, '--key', signer, '--yes', '--offline', ...args);
  return JSON.parse(printed.stdout) as Body;
}

async function post(body: unknown, headers: Headers = {}, to = desk): Promise<{ status: number; body: Body }> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await to.ask('/approvals', { method: 'POST', headers: { ...JSON_POST, ...headers }, body: text });
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  return { status: response.status, body: (await response.json()) as Body };
}

async function approvalsOf(payoutId: string) {
  const { approvals = [] } = await rig.account.ledger.require(payoutId);
  return approvals.map(({ by, decision }) => `${decision} ${by}`);
}

function redisOf(payoutId: string) {
  const { redis, keys } = rig.account.ledger.connection;
  return { redis, key: keys.payout(payoutId), keys };
}

async function readText(dashboard: RunningDashboard, path: string) {
  expect(injectedIn(await dashboard.read(path))).toBeNull();
  return dashboard.readText(path);
}

async function hold(payoutId: string, of: Partial<Hold>) {
  await rig.enqueue(payoutId);
  await sender.holdPayout(payoutId, 0, { ...RULE, message: 'because', ...of });
}

async function approve(payoutId: string, ...args: string[]) {
  await rig.run('approve', payoutId, '--key', rig.files.ann, '--yes', ...args);
}

async function report(given: Partial<PolicyReport> = {}) {
  const empty = { rules: [], held: [], ratesAt: null, ratesMissingSince: null };
  const { connection } = rig.account.ledger;
  await writePolicyReport(connection, { hash: 'ab'.repeat(32), at: Date.now() - 5_000, ...empty, ...given });
}

it('what is held is shown with why, what it needs, and commands', async () => {
  expect(await readText(keyed, '/held')).toContain('Nothing is held.');
  await rig.hold('h:four', { reference: EVIL });
  await approve('h:four');
  const until = new Date(Date.now() + 7_200_000).toISOString();
  await hold('h:wait', { reason: 'wait', rule: 'hour', message: '100 of 100 are spent', until });
  await hold('h:no', { reason: 'refuse', rule: 'btc' });
  await hold('h:sig', { kind: 'signature', reason: 'expired', rule: undefined, message: EVIL });
  const page = await readText(keyed, '/held?all=1');
  for (const row of [
    /h:four 12\.5 USDT four-eyes: needs approval .* 2 more people of finance .* ann approved – TXYZop…VkAeBf .* ≈ 12\.52 USD/,
    /h:wait 12\.5 USDT hour: waits 100 of 100 are spent nothing.* – [\d-]+ [\d:]+ UTC/,
    /h:no 12\.5 USDT btc: refuses .* a change of the policy/,
    /h:sig 12\.5 USDT signature: expired .* a release/,
  ])
    expect(page).toMatch(row);
  expect(page).toContain(`payouts approve --account ${platformId} h:four --key FILE`);
  expect(page).toContain(`payouts cancel --account ${platformId} h:four h:wait h:no h:sig --reason WHY`);
  expect(await readText(plain, '/held?rule=four-eyes')).toContain('key ann: not verified');
  await report({ held: [{ rule: EVIL, reason: 'wait', count: 1 }] });
  expect(await readText(keyed, '/held')).toMatch(/all \(4\) <img.*?: waits \(1\)/);
  const waiting = await keyed.read('/held?kind=policy&reason=wait');
  expect([...waiting.matchAll(/data-key="([^"]+)"/g)].map(([, id]) => id)).toEqual(['h:wait']);
  const { redis, key } = redisOf('h:no');
  await redis.hset(key, { metadata: '{' });
  expect(await readText(keyed, '/held')).toMatch(/payout h:no in Redis cannot be read.*h:four/);
});

it('the page of a payout says who signed and approved it, and what each rule says', async () => {
  await rig.hold('p', { requestedBy: 'Rita' });
  await approve('p', '--reason', 'ticket 9');
  const buckets = [{ bucket: '', spent: '95', wanted: '0', ratio: 0.95 }];
  const hour = { rule: 'hour', unit: 'amount', limit: '100', withinMs: 3_600_000, per: null, unknown: null } as const;
  const meaning = 'a payout in currency 7: at most 5 each, else it needs 2 approvals by finance (Ann, Bob)';
  await report({ rules: [{ ...hour, buckets }], meanings: [{ rule: 'four-eyes', meaning }] });
  expect(await readText(plain, '/policy')).toContain(`four-eyes ${meaning}`);
  const { redis, key, keys } = redisOf('altered');
  await rig.hold('altered');
  await redis.hset(key, { amount: '1250' });
  const forged = {
    payoutId: 'altered',
    intent: 'ab'.repeat(32),
    decision: 'approve',
    reason: '',
    by: 'bob',
    audience: 'test',
    signature: 'x',
  };
  const times = { at: new Date().toISOString(), expiresAt: '2099-01-01T00:00:00.000Z' };
  await redis.hset(key, { 'approval:bob': JSON.stringify({ ...forged, ...times }) });
  for (const [dashboard, path, ...words] of [
    [
      full,
      '/payouts/p',
      /Signed by sam with key shop : verified \..*hour .*waits: 95 of 100 of currency 7 are spent, and it is 12\.5/,
    ],
    [full, '/payouts/p', /Approved by ann \(key ann \), [\d-]+ [\d:]+ UTC until.*Reason: ticket 9/],
    [full, '/payouts/p', /needs 1 more approval by finance/, /btc .*is not about it/, /another policy: abababababab/],
    [plain, '/payouts/p', /Signed with key shop : not verified .*Does not count : not verified/],
    [full, '/payouts/altered', /shop : not verified \. .*is not over this payout.*it is held whatever the rules say/],
    [keyed, '/held?rule=four-eyes', /altered .*2 more people of finance .* key bob does not count: /],
  ] as const) {
    const page = await readText(dashboard, path);
    for (const each of words) expect(page).toMatch(each);
  }
  await redis.del(keys.policy);
});

it('what was sent is listed newest first, as of its begin', async () => {
  expect(await readText(keyed, '/audit')).toContain('Nothing was sent so far.');
  const lease = await takeLease(sender, 'one');
  await rig.enqueue('a:paid');
  await approve('a:paid');
  const asked = await nextBegin(sender, lease, 'a:paid');
  const sent = { payoutId: 'a:paid', attempt: 1 };
  const spend = { ...sent, id: 'a 1', paymentId: 7, amount: '12.5', addressTo: 'w', inFlightMs: 0, usd: 12_510_000n };
  await sender.beginSend({ ...asked, spend: { spend, since: 0 } });
  await sender.finishSend(
    { ...sent, token: asked.token },
    { kind: 'accepted', gatewayId: '0xfeed', txhash: '0xfeed' },
    NO_BREAKER,
    0,
  );
  await rig.enqueue('a:lost');
  const unknown = { kind: 'unknown', reason: 'no response' } as const;
  await sender.finishSend(await begin(sender, lease, 'a:lost'), unknown, NO_BREAKER, 0);
  await report();
  const page = await readText(keyed, '/audit');
  expect(page).toMatch(
    /a:lost 12\.5 USDT sam \(shop\) – unknown.*a:paid 12\.5 USDT 12\.51 USD sam \(shop\) ann in progress 0xfeed/,
  );
  expect(await readText(plain, '/audit')).toMatch(/nothing is verified.*key shop, not verified key ann, not verified/);
  // Signatures and approvals that expired since still counted then.
  const later = await start({ keysFile }, 30 * 86_400_000);
  expect(await readText(later, '/audit')).toMatch(/a:paid .*sam \(shop\) ann/);
  expect(await readText(later, '/payouts/a:paid')).toMatch(/Signed by sam with key shop : verified/);
  expect(await readText(later, '/payouts/p')).toMatch(/not verified \. It expired at/);
});

it('POST /approvals keeps what counts, says what is missing, and tells the worker', async () => {
  await rig.hold('w');
  expect(await post(await sign('w', 'ann', '--reason', 'ticket 9'))).toMatchObject({
    status: 200,
    body: {
      ...{ payoutId: 'w', decision: 'approve', by: 'ann', person: 'ann', state: 'held' },
      ...{ approvedBy: ['ann'], rejectedBy: [], missing: { by: 'finance', persons: 2 } },
    },
  });
  expect((await post(await sign('w', 'ann'), {}, full)).body['missing']).toEqual({ by: 'finance', persons: 1 });
  const own = { origin: new URL(full.url).origin, 'sec-fetch-site': 'same-origin' };
  const second = await post(await sign('w', 'bob'), own, full);
  expect(second).toMatchObject({ status: 200, body: { approvedBy: ['ann', 'bob'], missing: null } });
  expect(await approvalsOf('w')).toEqual(['approve ann', 'approve bob']);
  const { redis, keys } = redisOf('w');
  expect(await redis.smembers(keys.recheck)).toContain('w');
  const rejection = await rig.run('reject', 'w', '--key', rig.files.ann, '--offline', '--reason', 'not ours');
  const rejected = { rejectedBy: ['ann'], approvedBy: ['bob'] };
  expect(await post(rejection.stdout)).toMatchObject({ status: 200, body: rejected });
  expect(await post(await sign('w', 'ann'))).toMatchObject({ status: 409, body: { code: 'CONFLICT' } });
  const back = await rig.run('unreject', 'w', '--key', rig.files.ann, '--offline', '--yes', '--reason', 'it is ours');
  // It names a rejection. Of another payout, it takes back nothing.
  const elsewhere = JSON.stringify({ ...(JSON.parse(back.stdout) as object), intent: '0'.repeat(64) });
  expect(await post(elsewhere)).toMatchObject({ status: 403, body: { error: expect.stringMatching(/does not have/) } });
  const taken = { decision: 'unreject', person: 'ann', state: 'queued', rejectedBy: [] };
  expect(await post(back.stdout)).toMatchObject({ status: 200, body: taken });
});

const NO_PAYMENT = { paymentId: undefined, amount: undefined, symbol: undefined, addressTo: undefined };

describe('an upload is refused', () => {
  let right: Body;
  beforeAll(async () => {
    await rig.hold('form', { requestedBy: 'Rita' });
    right = await sign('form', 'ann');
  });

  type Refusal = [what: string, change: (right: Body) => unknown, status: number, error: RegExp, headers?: Headers];
  const withHeader =
    (name: string, status: number, error: RegExp) =>
    (value: string): Refusal => [`with the ${name} ${value}`, (body) => body, status, error, { [name]: value }];

  it.each<Refusal>([
    ['with nothing in it', () => '', 400, /payoutId: is missing.*signature: is missing/],
    ['that is no JSON', () => '{', 400, /no JSON/],
    ['with a field that is none', (body) => ({ ...body, note: '1' }), 400, /note: is not a known field/],
    ['that is too long', (body) => ({ ...body, payout: 'x'.repeat(17_000) }), 413, /./],
    ['of another intent', (body) => ({ ...body, intent: '0'.repeat(64) }), 403, /about another payout/],
    [
      'turned into a rejection',
      (body) => ({ ...body, decision: 'reject', ...NO_PAYMENT, expiresAt: undefined }),
      403,
      /is not over it/,
    ],
    [
      'of a rejection that expires',
      (body) => ({ ...body, ...NO_PAYMENT, decision: 'reject' }),
      400,
      /expiresAt: must be absent/,
    ],
    ['of no payout', (body) => ({ ...body, payoutId: 'none' }), 404, /none not found/],
    ...['application/jsonx', ''].map(withHeader('content-type', 415, /application\/json/)),
    withHeader('sec-fetch-site', 403, /./)('same-site'),
    ...['https://evil.example', 'null'].map(withHeader('origin', 403, /./)),
  ])('%s', async (_, change, status, error, headers = {}) => {
    const answer = await post(change(right), headers);
    expect(answer).toMatchObject({ status, body: { error: expect.stringMatching(error) } });
    if (status === 403 && Object.keys(headers).length > 0) expect(answer.body['code']).toBe('CROSS_SITE');
    expect(await approvalsOf('form')).toEqual([]);
  });

  it('where there is no keyring', async () => {
    const error = expect.stringContaining('has no keyring (PAYOUT_KEYS_FILE)');
    expect(await post(right, {}, plain)).toMatchObject({ status: 404, body: { error } });
    expect(await approvalsOf('form')).toEqual([]);
  });

  it('by any other method and path, also that of another account', async () => {
    const other = newPlatformId();
    const several = await start({ platformId: [platformId, other], keysFile });
    const send = async (to: RunningDashboard, request: string) => {
      const [method = '', path = ''] = request.split(' ');
      return (await to.ask(path, { method, headers: JSON_POST, body: JSON.stringify(right) })).status;
    };
    for (const request of ['PUT /approvals', 'POST /approvals/', 'POST /Approvals', 'POST /payouts'])
      expect([request, await send(desk, request)]).toEqual([request, 405]);
    expect(await send(several, 'POST /approvals')).toBe(405);
    expect(await send(several, `POST /accounts/${other}/approvals`)).toBe(404);
    expect(await approvalsOf('form')).toEqual([]);
    expect(await send(several, `POST /accounts/${platformId}/approvals`)).toBe(200);
    expect(await approvalsOf('form')).toEqual(['approve ann']);
  });

  it('of a key that was revoked since: the running dashboard reads its keyring again', async () => {
    await rig.hold('late');
    const byBob = await sign('late', 'bob');
    const { keys } = JSON.parse(await readFile(keysFile, 'utf8')) as { keys: readonly KeyEntry[] };
    const changed = keys.map((entry) => (entry.name === 'bob' ? { ...entry, revoked: true } : entry));
    await writeFile(keysFile, JSON.stringify({ version: 1, keys: changed }));
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const revoked = { error: expect.stringContaining('the key "bob" is revoked') };
    expect(await post(byBob)).toMatchObject({ status: 403, body: revoked });
    expect(await approvalsOf('late')).toEqual([]);
  });
});
