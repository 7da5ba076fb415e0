import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { writePolicyReport } from '../../../src/ledger/reads/policy-report.js';
import { begin, NO_BREAKER, nextBegin, takeLease } from '../../ledger/contract/ledger-rig.js';
import { EVIL, JudgingRig, readText, reportOf } from '../support/judging-rig.js';

/** What the page Audit says of what was sent. */

let judging: JudgingRig;

beforeAll(async () => {
  judging = await JudgingRig.open();
});

afterAll(async () => judging.close());

describe('what was sent', () => {
  it('is listed newest first, with signer, approvers, worth, outcome and txhash, as of its begin', async () => {
    const { connection } = judging.rig.account.ledger;
    expect(await readText(judging.keyed, '/audit')).toContain('Nothing was sent so far.');
    const lease = await takeLease(judging.sender, 'one');
    await judging.rig.enqueue('a:paid');
    await judging.approve('a:paid');
    const asked = await nextBegin(judging.sender, lease, 'a:paid');
    const spend = {
      id: 'a 1',
      payoutId: 'a:paid',
      attempt: 1,
      paymentId: 7,
      amount: '12.5',
      addressTo: 'w',
      usd: 12_510_000n,
    };
    await judging.sender.beginSend({ ...asked, spend: { spend, since: 0 } });
    await judging.sender.finishSend(
      { payoutId: 'a:paid', attempt: 1, token: asked.token },
      { kind: 'accepted', txhash: '0xfeed' },
      NO_BREAKER,
      0,
    );
    await judging.rig.enqueue('a:lost');
    await judging.sender.finishSend(
      await begin(judging.sender, lease, 'a:lost'),
      { kind: 'unknown', reason: 'no response' },
      NO_BREAKER,
      0,
    );
    await writePolicyReport(connection, reportOf());
    const page = await readText(judging.keyed, '/audit');
    expect(page.indexOf('a:lost')).toBeLessThan(page.indexOf('a:paid'));
    expect(page).toMatch(/a:paid 12\.5 USDT 12\.51 USD sam \(shop\) ann in progress 0xfeed/);
    expect(page).toMatch(/a:lost 12\.5 USDT sam \(shop\) – unknown/);
    expect(page).toContain('payouts audit verify');
    expect(page).toContain('as the worker reports it: abababababab');
    const unverified = await readText(judging.plain, '/audit');
    expect(unverified).toContain('nothing is verified');
    expect(unverified).toMatch(/key shop, not verified key ann, not verified/);
  });

  it('is judged as of its begin: signatures and approvals that expired since still counted then', async () => {
    const later = await judging.start({ keysFile: judging.rig.env['PAYOUT_KEYS_FILE'] ?? '' }, 30 * 86_400_000);
    expect(await readText(later, '/audit')).toMatch(/a:paid .*sam \(shop\) ann/);
    const page = await readText(later, '/payouts/a:paid');
    expect(page).toMatch(/Signed by sam with key shop : verified/);
    expect(page).toContain('Checked as of the begin of its last send');
    await judging.rig.hold('p');
    await judging.approve('p');
    expect(await readText(later, '/payouts/p')).toMatch(/not verified \. It expired at/);
    expect(await readText(later, '/held?rule=four-eyes')).toMatch(
      /p 12\.5 USDT four-eyes.*2 more people of finance to approve it key ann does not count/,
    );
  });

  it('shows each attempt with what came of it, and what was taken back', async () => {
    const { ledger } = judging.rig.account;
    await ledger.change({ payoutId: 'a:lost', from: 'unknown', to: 'queued', by: 'ann', reason: 'not paid' });
    const lease = await takeLease(judging.sender, 'two');
    await judging.sender.finishSend(
      await begin(judging.sender, lease, 'a:lost'),
      { kind: 'rejected', message: 'no' },
      NO_BREAKER,
      0,
    );
    const page = await readText(judging.keyed, '/audit');
    expect(
      [...page.matchAll(/a:lost 12\.5 USDT (?:[\d.]+ USD )?sam \(shop\) – (\w+)/g)].map(([, outcome]) => outcome),
    ).toEqual(['rejected', 'unknown']);
  });

  it('says so where the record is gone, and takes no time that is none', async () => {
    const { redis, keys } = judging.rig.account.ledger.connection;
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
    const page = await readText(judging.keyed, '/audit');
    expect(page).toMatch(/a:paid no longer in the ledger/);
  });

  it.each(['/audit?before=x', '/audit?before=1-1&before=2-1'])('responds 404 to %s', async (path) => {
    expect((await judging.keyed.ask(path)).status).toBe(404);
  });
});
