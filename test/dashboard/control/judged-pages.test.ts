import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/base/clock.js';
import type { Hold } from '../../../src/ledger/payout.js';
import { writeGatewayFacts } from '../../../src/ledger/reads/gateway-facts.js';
import { writePolicyReport, type PolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { openApprovalRig, RULE, type ApprovalRig } from '../../cli/support/approval-rig.js';
import { begin, NO_BREAKER, nextBegin, takeLease } from '../../ledger/contract/ledger-rig.js';
import { injectedIn, openDashboard, type RunningDashboard } from '../support/running-dashboard.js';

/** What pages say of signatures, approvals and rules. */

const EVIL = '<img src=x onerror=alert(1)>';

let rig: ApprovalRig;
let sender: RedisSenderLedger;
let platformId: number;
/** Of one account: with a keyring and a policy, with a keyring, and with nothing. */
let full: RunningDashboard;
let keyed: RunningDashboard;
let plain: RunningDashboard;
const opened: RunningDashboard[] = [];

beforeAll(async () => {
  rig = await openApprovalRig();
  const { connection } = rig.account.ledger;
  ({ platformId } = connection);
  sender = new RedisSenderLedger(connection, 'reply');
  const policyFile = `${rig.keys.dir}/policy.yaml`;
  await writeFile(policyFile, policyText(), { mode: 0o600 });
  const keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
  full = await start({ keysFile, policyFiles: new Map([[platformId, policyFile]]) });
  keyed = await start({ keysFile });
  plain = await start({});
  const currencies = [{ paymentId: 7, name: 'USDT', usdRate: '1.001' }];
  await writeGatewayFacts(connection, { currencies, currenciesAt: 1 });
});

afterAll(async () => {
  await Promise.all(opened.map(async (dashboard) => dashboard.close()));
  await rig.close();
});

function policyText(): string {
  return `version: 1
platformId: "${platformId}"
default: send
groups: { finance: [Ann, Bob] }
rules:
  - { name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }
  - { name: hour, when: { paymentId: ["7"] }, cap: { amount: "100", within: 1h }, over: wait }
  - { name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }
`;
}

/** @param aheadMs - of the dashboard's clock */
async function start(options: Parameters<typeof openDashboard>[1], aheadMs = 0): Promise<RunningDashboard> {
  const clock = { ...systemClock, advance: (): void => undefined, wallNow: () => Date.now() + aheadMs };
  const started = await openDashboard({ platformId, clock }, options);
  opened.push(started);
  return started;
}

async function readText(dashboard: RunningDashboard, path: string): Promise<string> {
  expect(injectedIn(await dashboard.read(path))).toBeNull();
  return dashboard.readText(path);
}

async function hold(payoutId: string, of: Partial<Hold>): Promise<void> {
  await rig.enqueue(payoutId);
  await sender.holdPayout(payoutId, 0, { ...RULE, message: 'because', ...of });
}

/** Ann approves it. */
async function approve(payoutId: string, ...args: string[]): Promise<void> {
  await rig.run('approve', payoutId, '--key', rig.files.ann, '--yes', ...args);
}

/** What a worker with a policy publishes. */
async function report(given: Partial<PolicyReport> = {}): Promise<void> {
  const empty = { rules: [], held: [], ratesAt: null, ratesMissingSince: null };
  const { connection } = rig.account.ledger;
  await writePolicyReport(connection, { hash: 'ab'.repeat(32), at: Date.now() - 5_000, ...empty, ...given });
}

describe('held payouts', () => {
  it('are shown with what each is, why, until when, who said what, what it needs, and commands', async () => {
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
  });

  it('have no approval that counts without a keyring, nor one that was forged', async () => {
    expect(await readText(plain, '/held?rule=four-eyes')).toContain('key ann: not verified');
    const { redis, keys } = rig.account.ledger.connection;
    await rig.hold('h:forged');
    const forged = { payoutId: 'h:forged', intent: 'ab'.repeat(32), decision: 'approve', by: 'bob', signature: 'x' };
    const times = { at: new Date().toISOString(), expiresAt: '2099-01-01T00:00:00.000Z' };
    await redis.hset(keys.payout('h:forged'), { 'approval:bob': JSON.stringify({ ...forged, ...times }) });
    expect(await readText(keyed, '/held?rule=four-eyes')).toMatch(
      /h:forged .*2 more people of finance .* key bob does not count: it is about another payout/,
    );
  });

  it('can be chosen by rule, verdict and kind, with the counts of the worker, also where one is altered', async () => {
    await report({ held: [{ rule: EVIL, reason: 'wait', count: 1 }] });
    expect(await readText(keyed, '/held')).toMatch(/all \(5\) <img.*?: waits \(1\)/);
    for (const [query, ids] of [
      ['kind=policy&rule=four-eyes&reason=approve', ['h:four', 'h:forged']],
      ['reason=wait', ['h:wait']],
      ['rule=none', []],
    ] as const) {
      const page = await keyed.read(`/held?${query}`);
      expect([...page.matchAll(/data-key="([^"]+)"/g)].map(([, id]) => id)).toEqual(ids);
    }
    for (const query of ['after=x', 'rule=a&rule=b', `rule=${'x'.repeat(201)}`])
      expect((await keyed.ask(`/held?${query}`)).status).toBe(404);
    const { redis, keys } = rig.account.ledger.connection;
    await redis.hset(keys.payout('h:no'), { metadata: '{' });
    expect(await readText(keyed, '/held')).toMatch(/payout h:no in Redis cannot be read.*h:four/);
  });
});

it('the page of a payout says who signed it, who approved it and why, what each rule says, and what is not known', async () => {
  await rig.hold('p', { requestedBy: 'Rita' });
  await approve('p', '--reason', 'ticket 9');
  const buckets = [{ bucket: '', spent: '95', wanted: '0', ratio: 0.95 }];
  const hour = { rule: 'hour', unit: 'amount', limit: '100', withinMs: 3_600_000, per: null, unknown: null } as const;
  await report({ rules: [{ ...hour, buckets }] });
  const { redis, keys } = rig.account.ledger.connection;
  await rig.hold('altered');
  await redis.hset(keys.payout('altered'), { amount: '1250' });
  for (const [dashboard, path, ...words] of [
    [
      full,
      '/payouts/p',
      /Signed by sam with key shop : verified \..*hour .*waits: 95 of 100 are spent, and it is 12\.5/,
    ],
    [full, '/payouts/p', /Approved by ann \(key ann \), [\d-]+ [\d:]+ UTC until.*Reason, not signed: ticket 9/],
    [full, '/payouts/p', /needs 1 more approval by finance/, /btc .*is not about it/, /another policy: abababababab/],
    [keyed, '/payouts/p', /no policy \( PAYOUT_POLICY_FILE \)/],
    [plain, '/payouts/p', /Signed with key shop : not verified .*Does not count : not verified/],
    [full, '/payouts/altered', /shop : not verified \. .*is not over this payout.*it is held whatever the rules say/],
  ] as const) {
    const page = await readText(dashboard, path);
    for (const each of words) expect(page).toMatch(each);
  }
  await redis.hset(keys.payout('altered'), { amount: EVIL });
  expect(await readText(full, '/payouts/altered')).toContain('A field of payout altered was altered: amount');
  await redis.del(keys.policy);
  await rig.enqueue('unsigned');
  await redis.hdel(keys.payout('unsigned'), 'key', 'sig');
  expect(await readText(keyed, '/payouts/unsigned')).not.toContain('Signed and approved');
});

describe('what was sent', () => {
  it('is listed newest first, with signer, approvers, worth, outcome and txhash, as of its begin', async () => {
    expect(await readText(keyed, '/audit')).toContain('Nothing was sent so far.');
    const lease = await takeLease(sender, 'one');
    await rig.enqueue('a:paid');
    await approve('a:paid');
    const asked = await nextBegin(sender, lease, 'a:paid');
    const sent = { payoutId: 'a:paid', attempt: 1 };
    const spend = { ...sent, id: 'a 1', paymentId: 7, amount: '12.5', addressTo: 'w', usd: 12_510_000n };
    await sender.beginSend({ ...asked, spend: { spend, since: 0 } });
    await sender.finishSend({ ...sent, token: asked.token }, { kind: 'accepted', txhash: '0xfeed' }, NO_BREAKER, 0);
    await rig.enqueue('a:lost');
    const unknown = { kind: 'unknown', reason: 'no response' } as const;
    await sender.finishSend(await begin(sender, lease, 'a:lost'), unknown, NO_BREAKER, 0);
    await report();
    const page = await readText(keyed, '/audit');
    expect(page).toMatch(
      /a:lost 12\.5 USDT sam \(shop\) – unknown.*a:paid 12\.5 USDT 12\.51 USD sam \(shop\) ann in progress 0xfeed/,
    );
    expect(page).toContain('as the worker reports it: abababababab');
    expect(await readText(plain, '/audit')).toMatch(
      /nothing is verified.*key shop, not verified key ann, not verified/,
    );
  });

  it('is judged as of its begin: signatures and approvals that expired since still counted then', async () => {
    const later = await start({ keysFile: rig.env['PAYOUT_KEYS_FILE'] ?? '' }, 30 * 86_400_000);
    expect(await readText(later, '/audit')).toMatch(/a:paid .*sam \(shop\) ann/);
    expect(await readText(later, '/payouts/a:paid')).toMatch(/Signed by sam with key shop : verified/);
    expect(await readText(later, '/payouts/p')).toMatch(/not verified \. It expired at/);
  });

  it('has each attempt with what came of it, and says where the record is gone or has no time', async () => {
    const { ledger } = rig.account;
    await ledger.change({ payoutId: 'a:lost', from: 'unknown', to: 'queued', by: 'ann', reason: 'not paid' });
    const attempt = await begin(sender, await takeLease(sender, 'two'), 'a:lost');
    await sender.finishSend(attempt, { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
    const outcomes = (await readText(keyed, '/audit')).matchAll(/a:lost [^–]*sam \(shop\) – (\w+)/g);
    expect([...outcomes].map(([, outcome]) => outcome)).toEqual(['rejected', 'unknown']);
    const { redis, keys } = ledger.connection;
    await redis.del(keys.payout('a:paid'));
    const event = { type: 'state', payoutId: EVIL, from: 'queued', to: 'sending', at: 'never', by: '', reason: '' };
    await redis.xadd(keys.events, '*', ...Object.entries(event).flat());
    expect(await readText(keyed, '/audit')).toMatch(/a:paid no longer in the ledger/);
    expect((await keyed.ask('/audit?before=x')).status).toBe(404);
  });
});
