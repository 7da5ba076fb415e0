import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { writePolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { EVIL, JudgingRig, readText, reportOf } from '../support/judging-rig.js';

/** What pages say of signatures, approvals and rules. */

let judging: JudgingRig;

beforeAll(async () => {
  judging = await JudgingRig.open();
});

afterAll(async () => judging.close());

describe('held payouts', () => {
  it('says so where nothing is held', async () => {
    expect(await readText(judging.keyed, '/held')).toContain('Nothing is held.');
  });

  it('shows each with what it is, why, until when, who said what, what it needs, and the commands for the selected', async () => {
    await judging.rig.hold('h:four', { reference: EVIL });
    await judging.approve('h:four');
    const until = new Date(Date.now() + 7_200_000).toISOString();
    await judging.hold('h:wait', { reason: 'wait', rule: 'hour', message: '100 of 100 are spent', until });
    await judging.hold('h:no', { reason: 'refuse', rule: 'btc' });
    await judging.hold('h:sig', { kind: 'signature', reason: 'expired', rule: undefined, message: EVIL });
    const page = await readText(judging.keyed, '/held?all=1');
    expect(page).toMatch(
      /h:four 12\.5 USDT four-eyes: needs approval .* 2 more people of finance to approve it ann approved – TXYZop…VkAeBf .* ≈ 12\.52 USD/,
    );
    expect(page).toMatch(
      /h:wait 12\.5 USDT hour: waits 100 of 100 are spent nothing: it is sent when there is room – [\d-]+ [\d:]+ UTC/,
    );
    expect(page).toMatch(/h:no 12\.5 USDT btc: refuses .* a change of the policy/);
    expect(page).toMatch(/h:sig 12\.5 USDT signature: expired .* a release, once the cause is gone/);
    const account = `--account ${judging.platformId}`;
    expect(page).toContain(`payouts approve ${account} h:four --key FILE`);
    expect(page).toContain(`payouts release ${account} h:sig --reason WHY`);
    expect(page).toContain(`payouts cancel ${account} h:four h:wait h:no h:sig --reason WHY`);
  });

  it('does not say that an approval counts where it has no keyring, or where it does not', async () => {
    expect(await readText(judging.plain, '/held?rule=four-eyes')).toContain(
      'key ann: not verified, this dashboard has no keyring',
    );
    const { redis, keys } = judging.rig.account.ledger.connection;
    await judging.rig.hold('h:forged');
    const forged = {
      payoutId: 'h:forged',
      intent: 'ab'.repeat(32),
      decision: 'approve',
      by: 'bob',
      at: new Date().toISOString(),
    };
    const approval = JSON.stringify({ ...forged, expiresAt: '2099-01-01T00:00:00.000Z', signature: 'x' });
    await redis.hset(keys.payout('h:forged'), { 'approval:bob': approval });
    const page = await readText(judging.keyed, '/held?rule=four-eyes');
    expect(page).toMatch(
      /h:forged .*2 more people of finance to approve it key bob does not count: it is about another payout/,
    );
  });

  it('can be chosen by rule, verdict and kind, with the counts of the worker', async () => {
    const held = [
      { rule: 'four-eyes', reason: 'approve', count: 2 },
      { rule: EVIL, reason: 'wait', count: 1 },
    ];
    await writePolicyReport(judging.rig.account.ledger.connection, reportOf({ held }));
    const html = await judging.keyed.read('/held');
    expect(html).toContain('href="/held?kind=policy&amp;rule=four-eyes&amp;reason=approve"');
    expect(await readText(judging.keyed, '/held')).toMatch(
      /all \(5\) four-eyes: needs approval \(2\) <img.*?: waits \(1\) policy signature send journal/,
    );
    const idsOn = async (path: string): Promise<string[]> =>
      [...(await judging.keyed.read(path)).matchAll(/data-key="([^"]+)"/g)].map(([, id = '']) => id);
    expect(await idsOn('/held?kind=policy&rule=four-eyes&reason=approve')).toEqual(['h:four', 'h:forged']);
    expect(await idsOn('/held?kind=signature')).toEqual(['h:sig']);
    expect(await idsOn('/held?reason=wait')).toEqual(['h:wait']);
    expect(await idsOn('/held?rule=none')).toEqual([]);
    expect(await readText(judging.keyed, '/held?rule=none')).toContain('No payout is held by this.');
  });

  it('shows the others where someone altered the record of one', async () => {
    const { redis, keys } = judging.rig.account.ledger.connection;
    await judging.rig.hold('h:broken');
    await redis.hset(keys.payout('h:broken'), { metadata: '{' });
    const page = await readText(judging.keyed, '/held');
    expect(page).toContain('The record of payout h:broken in Redis cannot be read');
    expect(page).toContain('h:four');
    await redis.hdel(keys.payout('h:broken'), 'metadata');
  });

  it.each(['/held?after=x', '/held?after=1&after=2', '/held?rule=a&rule=b', `/held?rule=${'x'.repeat(201)}`])(
    'responds 404 to %s',
    async (path) => {
      expect((await judging.keyed.ask(path)).status).toBe(404);
    },
  );
});

describe('the page of a payout', () => {
  it('says who signed it, who approved it and why, and what each rule says', async () => {
    await judging.rig.hold('p', { requestedBy: 'Rita' });
    await judging.approve('p', '--reason', 'ticket 9');
    await writePolicyReport(
      judging.rig.account.ledger.connection,
      reportOf({
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
    const page = await readText(judging.full, '/payouts/p');
    expect(page).toMatch(/Signed by sam with key shop : verified \./);
    expect(page).toMatch(/Approved by ann \(key ann \), [\d-]+ [\d:]+ UTC until/);
    expect(page).toContain('Reason, not signed: ticket 9');
    expect(page).toContain('By the rules, the payout needs 1 more approval by finance');
    expect(page).toMatch(/four-eyes .*needs 1 more approval by finance: it is 12\.5, more than 5/);
    expect(page).toMatch(/hour .*waits: 95 of 100 are spent, and it is 12\.5/);
    expect(page).toMatch(/btc .*is not about it/);
    expect(page).toContain('another policy: abababababab');
    expect(page).toMatch(/Not known to this dashboard: what was spent since the worker published it/);
  });

  it('says that it cannot tell what rules say without the policy, nor who signed without the keyring', async () => {
    expect(await readText(judging.keyed, '/payouts/p')).toContain(
      'This dashboard has no policy ( PAYOUT_POLICY_FILE )',
    );
    const page = await readText(judging.plain, '/payouts/p');
    expect(page).toMatch(/Signed with key shop : not verified , this dashboard has no keyring/);
    expect(page).toContain('Does not count : not verified: no keyring here');
  });

  it('says why a signature does not count', async () => {
    const { redis, keys } = judging.rig.account.ledger.connection;
    await judging.rig.hold('altered');
    await redis.hset(keys.payout('altered'), { amount: '1250' });
    const page = await readText(judging.full, '/payouts/altered');
    expect(page).toMatch(/key shop : not verified \. The signature of key "?&?.*shop.* is not over this payout/);
    expect(page).toContain('so it is held whatever the rules say');
    await redis.hset(keys.payout('altered'), { amount: EVIL });
    expect(await readText(judging.full, '/payouts/altered')).toContain('A field of payout altered was altered: amount');
  });

  it('has nothing of all that where nothing is signed and no policy counts', async () => {
    const { connection, ledger } = {
      connection: judging.rig.account.ledger.connection,
      ledger: judging.rig.account.ledger,
    };
    await connection.redis.del(connection.keys.policy);
    await judging.rig.enqueue('unsigned');
    await connection.redis.hdel(connection.keys.payout('unsigned'), 'key', 'sig');
    expect((await ledger.require('unsigned')).signed).toBeUndefined();
    expect(await readText(judging.plain, '/payouts/unsigned')).not.toContain('Signed and approved');
    expect(await readText(judging.keyed, '/payouts/unsigned')).not.toContain('Signed and approved');
  });
});
