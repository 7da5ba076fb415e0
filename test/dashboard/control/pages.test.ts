import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { systemClock } from '../../../src/clock.js';
import { RedisSenderLedger } from '../../../src/ledger/redis-sender-ledger.js';
import { writeGatewayFacts } from '../../../src/ledger/gateway-facts.js';
import { writePolicyReport, type PolicyReport } from '../../../src/ledger/policy-report.js';
import type { Hold } from '../../../src/ledger/hold.js';
import { openApprovalRig, RULE, type ApprovalRig } from '../../cli/support/approval-rig.js';
import { begin, NO_BREAKER, nextBegin, takeLease } from '../../ledger/contract/ledger-rig.js';
import { openDashboard, type RunningDashboard } from '../support/running-dashboard.js';

/** What pages say of signatures, approvals, rules, and of what was sent. */

const CLOCK = { ...systemClock, advance: () => undefined };
const ADDRESS = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
const EVIL = '<img src=x onerror=alert(1)>';

let rig: ApprovalRig;
let sender: RedisSenderLedger;
/** With a keyring and a policy, with a keyring, and with nothing. */
let full: RunningDashboard;
let keyed: RunningDashboard;
let plain: RunningDashboard;
let platformId: number;
/** Each is closed at the end, also after a failure. */
const open: RunningDashboard[] = [];

beforeAll(async () => {
  rig = await openApprovalRig();
  const { connection } = rig.account.ledger;
  ({ platformId } = connection);
  sender = new RedisSenderLedger(connection, 'reply');
  const policyFile = `${rig.keys.dir}/policy.yaml`;
  const rules = [
    '{ name: four-eyes, when: { paymentId: ["7"] }, cap: { amount: "5" }, over: { approve: { by: finance, quorum: 2 } } }',
    '{ name: hour, when: { paymentId: ["7"] }, cap: { amount: "100", within: 1h }, over: wait }',
    '{ name: btc, when: { paymentId: ["10"] }, cap: { amount: "1" }, over: refuse }',
  ];
  const head = `version: 1\nplatformId: "${platformId}"\ndefault: send\ngroups: { finance: [Ann, Bob] }\nrules:\n`;
  await writeFile(policyFile, head + rules.map((rule) => `  - ${rule}\n`).join(''), { mode: 0o600 });
  const keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
  const account = { platformId, clock: CLOCK };
  full = await openDashboard(account, { keysFile, policyFiles: new Map([[platformId, policyFile]]) });
  keyed = await openDashboard(account, { keysFile });
  plain = await openDashboard(account);
  open.push(full, keyed, plain);
  const currencies = [{ paymentId: 7, name: 'USDT', usdRate: '1.001' }];
  await writeGatewayFacts(connection, { currencies, currenciesAt: 1 });
});

afterAll(async () => {
  await Promise.all(open.map(async (dashboard) => dashboard.close()));
  await rig.close();
});

/** What a reader sees. */
async function read(dashboard: RunningDashboard, path: string): Promise<string> {
  const page = await dashboard.read(path);
  expect(page).not.toContain('<img');
  const [, main = ''] = /<main[^]*?>([^]*)<\/main>/.exec(page) ?? [];
  return main
    .replace(/<caption[^]*?<\/caption>/g, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/\s+/g, ' ');
}

async function hold(
  payoutId: string,
  of: Partial<Hold>,
  given: Parameters<ApprovalRig['enqueue']>[1] = {},
): Promise<void> {
  await rig.enqueue(payoutId, given);
  await sender.holdPayout(payoutId, 0, { ...RULE, message: 'because', ...of });
}

function report(given: Partial<PolicyReport> = {}): PolicyReport {
  return { hash: 'ab'.repeat(32), at: Date.now() - 5_000, rules: [], held: [], ratesAt: null, ...given };
}

const approve = async (payoutId: string, ...args: string[]): Promise<unknown> =>
  rig.run('approve', payoutId, '--key', rig.files.ann, '--yes', ...args);

describe('held payouts', () => {
  it('says so where nothing is held', async () => {
    expect(await read(keyed, '/held')).toContain('Nothing is held.');
  });

  it('shows each with what it is, why, until when, who approved it, and what frees it', async () => {
    await rig.hold('h:four', { reference: EVIL });
    await approve('h:four');
    const until = new Date(Date.now() + 7_200_000).toISOString();
    await hold('h:wait', { reason: 'wait', rule: 'hour', message: '100 of 100 are spent', until });
    await hold('h:no', { reason: 'refuse', rule: 'btc' });
    await hold('h:sig', { kind: 'signature', reason: 'expired', rule: undefined, message: EVIL });
    const page = await read(keyed, '/held');
    const parts = page.split(/ (?=h:\w+ (?:four-eyes|hour|btc|signature))/).slice(1);
    expect(parts.map((part) => part.split(' ')[0])).toEqual(['h:four', 'h:wait', 'h:no', 'h:sig']);
    const [four = '', wait = '', no = '', sig = ''] = parts;
    expect(four).toMatch(/Amount 12\.5 USDT ≈ 12\.52 USD/);
    expect(four).toContain(ADDRESS);
    expect(four).toContain('Approved by Ann 2 more persons of finance needed');
    expect(four).toContain(`payouts approve --account ${platformId} h:four --key FILE`);
    expect(wait).toContain('100 of 100 are spent');
    expect(wait).toMatch(/Until [\d-]+ [\d:]+ UTC \( in 1 h 59 min \)/);
    expect(wait).toContain('Nothing to do: it is sent by itself');
    expect(no).toContain(`payouts cancel --account ${platformId} h:no --reason WHY`);
    expect(sig).toContain('signature: expired');
    expect(sig).toContain(`payouts release --account ${platformId} h:sig --reason WHY`);
  });

  it('does not say that an approval counts where it has no keyring, or where it does not', async () => {
    expect(await read(plain, '/held?rule=four-eyes')).toContain('said by ann, not verified: no keyring here');
    const { redis, keys } = rig.account.ledger.connection;
    await rig.hold('h:forged');
    const forged = {
      payoutId: 'h:forged',
      intent: 'ab'.repeat(32),
      decision: 'approve',
      by: 'bob',
      at: new Date().toISOString(),
    };
    const approval = JSON.stringify({ ...forged, expiresAt: '2099-01-01T00:00:00.000Z', signature: 'x' });
    await redis.hset(keys.payout('h:forged'), { 'approval:bob': approval });
    const page = await read(keyed, '/held?rule=four-eyes');
    expect(page).toMatch(
      /h:forged four-eyes.*Approved by nobody so far.*Does not count key bob: it is about another payout/,
    );
  });

  it('can be chosen by rule, verdict and kind, with the counts of the worker', async () => {
    const held = [
      { rule: 'four-eyes', reason: 'approve', count: 2 },
      { rule: EVIL, reason: 'wait', count: 1 },
    ];
    await writePolicyReport(rig.account.ledger.connection, report({ held }));
    const html = await keyed.read('/held');
    expect(html).toContain('href="/held?kind=policy&amp;rule=four-eyes&amp;reason=approve"');
    expect(await read(keyed, '/held')).toMatch(
      /all \(5\) four-eyes: needs approval \(2\) <img.*?: waits \(1\) policy signature send journal/,
    );
    const idsOn = async (path: string): Promise<string[]> =>
      [...(await keyed.read(path)).matchAll(/data-key="([^"]+)"/g)].map(([, id = '']) => id);
    expect(await idsOn('/held?kind=policy&rule=four-eyes&reason=approve')).toEqual(['h:four', 'h:forged']);
    expect(await idsOn('/held?kind=signature')).toEqual(['h:sig']);
    expect(await idsOn('/held?reason=wait')).toEqual(['h:wait']);
    expect(await idsOn('/held?rule=none')).toEqual([]);
    expect(await read(keyed, '/held?rule=none')).toContain('No payout is held by this.');
  });

  it('shows the others where somebody altered the record of one', async () => {
    const { redis, keys } = rig.account.ledger.connection;
    await rig.hold('h:broken');
    await redis.hset(keys.payout('h:broken'), { metadata: '{' });
    const page = await read(keyed, '/held');
    expect(page).toContain('The record of payout h:broken in Redis cannot be read');
    expect(page).toContain('h:four');
    await redis.hdel(keys.payout('h:broken'), 'metadata');
  });

  it.each(['/held?after=x', '/held?after=1&after=2', '/held?rule=a&rule=b', `/held?rule=${'x'.repeat(201)}`])(
    'responds 404 to %s',
    async (path) => {
      expect((await keyed.ask(path)).status).toBe(404);
    },
  );
});

describe('the page of a payout', () => {
  it('says who signed it, who approved it and why, and what each rule says', async () => {
    await rig.hold('p', { requestedBy: 'Rita' });
    await approve('p', '--reason', 'ticket 9');
    await writePolicyReport(
      rig.account.ledger.connection,
      report({
        rules: [
          {
            rule: 'hour',
            unit: 'amount',
            limit: '100',
            withinMs: 3_600_000,
            per: null,
            buckets: [{ bucket: '', spent: '95', wanted: '0', ratio: 0.95 }],
            unknown: null,
          },
        ],
      }),
    );
    const page = await read(full, '/payouts/p');
    expect(page).toMatch(/Signed by Sam with key shop : verified \./);
    expect(page).toMatch(/Approved by Ann \(key ann \), [\d-]+ [\d:]+ UTC until/);
    expect(page).toContain('Reason, not signed: ticket 9');
    expect(page).toContain('By the rules, the payout needs 1 more approval by finance');
    expect(page).toMatch(/four-eyes .*The payout needs 1 more approval by finance: it is 12\.5, more than 5/);
    expect(page).toMatch(/hour .*The payout waits: 95 of 100 are spent, and it is 12\.5/);
    expect(page).toMatch(/btc .*The payout is not about it/);
    expect(page).toContain('another policy: abababababab');
    expect(page).toMatch(/Not known to this dashboard: what was spent since the worker told it/);
  });

  it('says that it cannot tell what rules say without the policy, nor who signed without the keyring', async () => {
    expect(await read(keyed, '/payouts/p')).toContain('This dashboard has no policy ( PAYOUT_POLICY_FILE )');
    const page = await read(plain, '/payouts/p');
    expect(page).toMatch(/Signed with key shop : not verified , this dashboard has no keyring/);
    expect(page).toContain('Does not count : not verified: no keyring here');
  });

  it('says why a signature does not count', async () => {
    const { redis, keys } = rig.account.ledger.connection;
    await rig.hold('altered');
    await redis.hset(keys.payout('altered'), { amount: '1250' });
    const page = await read(full, '/payouts/altered');
    expect(page).toMatch(/key shop : not verified \. The signature of key "?&?.*shop.* is not over this payout/);
    expect(page).toContain('so it is held whatever the rules say');
    await redis.hset(keys.payout('altered'), { amount: EVIL });
    expect(await read(full, '/payouts/altered')).toContain('A field of payout altered was altered: amount');
  });

  it('has nothing of all that where nothing is signed and no policy counts', async () => {
    const { connection, ledger } = { connection: rig.account.ledger.connection, ledger: rig.account.ledger };
    await connection.redis.del(connection.keys.policy);
    await rig.enqueue('unsigned');
    await connection.redis.hdel(connection.keys.payout('unsigned'), 'key', 'sig');
    expect((await ledger.require('unsigned')).signed).toBeUndefined();
    expect(await read(plain, '/payouts/unsigned')).not.toContain('Signed and approved');
    expect(await read(keyed, '/payouts/unsigned')).not.toContain('Signed and approved');
  });
});

describe('what was sent', () => {
  it('is listed newest first, with signer, approvers, worth, outcome and txhash, as of its begin', async () => {
    const { connection } = rig.account.ledger;
    expect(await read(keyed, '/audit')).toContain('Nothing was sent so far.');
    const lease = await takeLease(sender, 'one');
    await rig.enqueue('a:paid');
    await approve('a:paid');
    const asked = await nextBegin(sender, lease, 'a:paid');
    const spend = {
      id: 'a 1',
      payoutId: 'a:paid',
      attempt: 1,
      paymentId: 7,
      amount: '12.5',
      addressTo: ADDRESS,
      usd: 12_510_000n,
    };
    await sender.beginSend({ ...asked, spend: { spend, since: 0 } });
    await sender.finishSend(
      { payoutId: 'a:paid', attempt: 1, token: asked.token },
      { kind: 'accepted', txhash: '0xfeed' },
      NO_BREAKER,
      0,
    );
    await rig.enqueue('a:lost');
    await sender.finishSend(
      await begin(sender, lease, 'a:lost'),
      { kind: 'unknown', reason: 'no response' },
      NO_BREAKER,
      0,
    );
    await writePolicyReport(connection, report());
    const page = await read(keyed, '/audit');
    expect(page.indexOf('a:lost')).toBeLessThan(page.indexOf('a:paid'));
    expect(page).toMatch(
      /a:paid Amount 12\.5 USDT 12\.51 USD at its begin Signed by Sam \(shop\) Approved by Ann Outcome in progress txhash 0xfeed/,
    );
    expect(page).toMatch(/a:lost Amount 12\.5 USDT Signed by Sam \(shop\) Approved by – Outcome unknown/);
    expect(page).toContain('payouts audit verify');
    expect(page).toContain('says the worker: abababababab');
    const unverified = await read(plain, '/audit');
    expect(unverified).toContain('nothing is verified');
    expect(unverified).toMatch(/key shop, not verified Approved by key ann, not verified/);
  });

  it('is judged as of its begin: signatures and approvals that expired since still counted then', async () => {
    const clock = { ...CLOCK, wallNow: () => Date.now() + 30 * 86_400_000 };
    const keysFile = rig.env['PAYOUT_KEYS_FILE'] ?? '';
    const later = await openDashboard({ platformId, clock }, { keysFile });
    open.push(later);
    expect(await read(later, '/audit')).toMatch(/a:paid .*Signed by Sam \(shop\) Approved by Ann/);
    const page = await read(later, '/payouts/a:paid');
    expect(page).toMatch(/Signed by Sam with key shop : verified/);
    expect(page).toContain('Judged as of the begin of its last send');
    expect(await read(later, '/payouts/p')).toMatch(/not verified \. It expired at/);
    expect(await read(later, '/held?rule=four-eyes')).toMatch(
      /h:four .*Approved by nobody so far.*Does not count key ann/,
    );
  });

  it('shows each attempt with what came of it, and what was taken back', async () => {
    const { ledger } = rig.account;
    await ledger.change({ payoutId: 'a:lost', from: 'unknown', to: 'queued', by: 'ann', reason: 'not paid' });
    const lease = await takeLease(sender, 'two');
    await sender.finishSend(await begin(sender, lease, 'a:lost'), { kind: 'rejected', message: 'no' }, NO_BREAKER, 0);
    const page = await read(keyed, '/audit');
    expect([...page.matchAll(/a:lost .*?Outcome (\w+)/g)].map(([, outcome]) => outcome)).toEqual([
      'rejected',
      'unknown',
    ]);
  });

  it('says so where the record is gone, and takes no time that is none', async () => {
    const { redis, keys } = rig.account.ledger.connection;
    await redis.del(keys.payout('a:paid'));
    await redis.xadd(
      keys.events,
      '*',
      'type',
      'state',
      'payoutId',
      EVIL,
      'from',
      'queued',
      'to',
      'sending',
      'at',
      'never',
      'by',
      '',
      'reason',
      '',
    );
    const page = await read(keyed, '/audit');
    expect(page).toMatch(/a:paid Outcome no longer in the ledger/);
  });

  it.each(['/audit?before=x', '/audit?before=1-1&before=2-1'])('responds 404 to %s', async (path) => {
    expect((await keyed.ask(path)).status).toBe(404);
  });
});
