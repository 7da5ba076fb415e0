import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { KeyEntry } from '../../control/support/keys.js';
import { PostingRig, time, type Body } from '../support/posting-rig.js';

/** What the one write of the dashboard does not take, though it is a signed approval by its form. */

let desk: PostingRig;

beforeAll(async () => {
  desk = await PostingRig.open();
});

afterAll(async () => desk.close());

describe('an approval that does not count is refused', () => {
  beforeAll(async () => {
    await desk.rig.hold('q', { requestedBy: 'Rita' });
  });

  /** What nobody could sign through the command, which refuses it itself. */
  const forge = async (change: Body): Promise<Body> => ({ ...(await desk.sign('q', 'ann')), ...change });

  it.each<[name: string, make: () => Promise<Body>, error: RegExp]>([
    ['of a key that is not known', async () => forge({ by: 'mallory' }), /"mallory" is not in the worker's keyring/],
    ['in the name of another', async () => forge({ by: 'rita' }), /signature of key "rita" is not over it/],
    ["of an operator's key", async () => forge({ by: 'olga' }), /has the role operator, not approver/],
    ["of a producer's key", async () => forge({ by: 'shop' }), /has the role producer, not approver/],
    [
      'of another intent',
      async () => forge({ intent: '0'.repeat(64) }),
      /about another payout, or the payout was signed again/,
    ],
    ['turned into a rejection', async () => forge({ decision: 'reject' }), /is not over it/],
    [
      'held longer than it was signed for',
      async () => forge({ expiresAt: '2099-01-01T00:00:00.000Z' }),
      /is not over it/,
    ],
    ['without its signature', async () => forge({ signature: '' }), /is not over it/],
  ])('%s', async (_, make, error) => {
    const body = await make();
    await desk.expectRefused('q', async () => desk.post(body), {
      ...{ status: 403, body: { code: 'NOT_VERIFIED', error: expect.stringMatching(error) } },
    });
  });

  it.each([
    ['of the person who requested the payout', 'rita', {}, /rita asked for the payout, and cannot approve it/],
    ['of the person whose key signed the payout', 'sam', {}, /sam asked for the payout, and cannot approve it/],
    ['that expired', 'ann', { at: time(-2), expiresAt: time(-1) }, /it expired at/],
    ['of the future', 'ann', { at: time(1), expiresAt: time(2) }, /which is in the future/],
    ['for longer than any holds', 'ann', { expiresAt: time(24 * 8) }, /signed for too long/],
    ['for another account', 'ann', { platformId: 1 }, /is not over it/],
  ] as const)('%s', async (_, key, change, error) => {
    const body = await desk.signAs(key, 'q', change);
    await desk.expectRefused('q', async () => desk.post(body), {
      ...{ status: 403, body: { error: expect.stringMatching(error) } },
    });
  });

  it('by a second key of the same person: it is the same person', async () => {
    await desk.rig.hold('twice');
    const second = await desk.rig.keys.makeKey('ann-2');
    await desk.changeKeyring((keys) => [
      ...keys,
      { name: 'ann-2', role: 'approver', person: 'Ann', public: second.public },
    ]);
    expect(await desk.post(await desk.signAs('ann', 'twice'))).toMatchObject({
      status: 200,
      body: { approvedBy: ['ann'] },
    });
    const again = await desk.post(await desk.signAs('ann-2', 'twice'));
    expect(again).toMatchObject({ status: 200, body: { person: 'ann', approvedBy: ['ann'] } });
  });

  it('of a key that was revoked since, without a restart', async () => {
    await desk.rig.hold('late');
    const body = await desk.sign('late', 'bob');
    const revoke = (isRevoked: boolean) => (keys: readonly KeyEntry[]) =>
      keys.map((key) => (key.name === 'bob' ? { ...key, revoked: isRevoked } : key));
    await desk.changeKeyring(revoke(true));
    await desk.expectRefused('late', async () => desk.post(body), {
      ...{ status: 403, body: { error: expect.stringContaining('the key "bob" is revoked') } },
    });
    await desk.changeKeyring(revoke(false));
    expect(await desk.post(body)).toMatchObject({ status: 200 });
  });

  it('of a payout that is not held or queued, and of none', async () => {
    await desk.rig.hold('gone');
    const body = await desk.sign('gone', 'ann');
    await desk.rig.run('cancel', 'gone', '--reason', 'over');
    await desk.expectRefused('gone', async () => desk.post(body), {
      ...{ status: 409, body: { code: 'CONFLICT', error: expect.stringContaining('Payout gone is cancelled') } },
    });
    expect(await desk.post({ ...body, payoutId: 'none' })).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } });
  });

  it('of a payout that someone altered', async () => {
    await desk.rig.hold('altered');
    const body = await desk.sign('altered', 'ann');
    const { connection } = desk.rig.account.ledger;
    await connection.redis.hset(connection.keys.payout('altered'), { amount: '1250' });
    await desk.expectRefused('altered', async () => desk.post(body), {
      ...{ status: 403, body: { error: expect.stringContaining('Payout altered is not verified') } },
    });
  });
});
