import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { adoptLedger, adoptSends, findForgottenSends, type WitnessedSend } from '../../src/ledger/adopt-ledger.js';
import { readLedger } from '../../src/ledger/ledger-connection.js';
import { RedisSenderLedger } from '../../src/ledger/redis-sender-ledger.js';
import { JOURNAL_WITNESS } from '../../src/ledger/witness.js';
import { begin, takeLease } from './contract/ledger-rig.js';
import { aPayout } from './support/a-payout.js';
import { openTestAccount, type TestAccount } from './support/test-account.js';

let account: TestAccount;
beforeEach(() => {
  account = openTestAccount();
});
afterEach(async () => account.close());

const ANN = { by: 'ann', reason: 'restored\ta copy' };

function aSend(payoutId: string, attempt = 1, epoch = 1): WitnessedSend {
  const { paymentId, amount, addressTo } = aPayout(payoutId);
  return { payoutId, attempt, epoch, request: { paymentId, amount, addressTo } };
}

/** `p` has begun its first attempt, `q` is queued. */
async function makeLedger(): Promise<void> {
  await account.ledger.enqueue([aPayout('p'), aPayout('q')]);
  const sender = new RedisSenderLedger(account.connection, 'reply');
  await begin(sender, await takeLease(sender, 'one'), 'p');
}

describe('findForgottenSends', () => {
  it('names the sends that the ledger does not know, in order and with the state it has, and changes nothing', async () => {
    await makeLedger();
    const before = await account.dump();
    const sends = [aSend('gone'), aSend('p'), aSend('p', 2), aSend('q')];
    expect(await findForgottenSends(account.connection, sends)).toEqual([
      { send: sends[0], state: undefined },
      { send: sends[2], state: 'sending' },
      { send: sends[3], state: 'queued' },
    ]);
    expect(await account.dump()).toEqual(before);
  });

  it('takes a number that an earlier lease used up for no send of a later one', async () => {
    await account.ledger.enqueue([aPayout('p')]);
    const sender = new RedisSenderLedger(account.connection, 'reply');
    const lease = await takeLease(sender, 'one');
    await sender.revertSend({ payoutId: 'p', attempt: 1, epoch: lease.epoch }, 'its begin got no reply');
    const sends = [aSend('p', 1, lease.epoch), aSend('p', 1, lease.epoch + 1)];
    expect(await findForgottenSends(account.connection, sends)).toEqual([{ send: sends[1], state: 'queued' }]);
    expect(await adoptSends(account.connection, sends, ANN)).toEqual(['p']);
    expect(await findForgottenSends(account.connection, sends)).toEqual([]);
  });

  it('looks at more sends than go over the wire together', async () => {
    await makeLedger();
    const sends = Array.from({ length: 1_001 }, (_, index) => aSend(`gone-${index}`));
    expect((await findForgottenSends(account.connection, sends)).map(({ send }) => send)).toEqual(sends);
    expect(await findForgottenSends(account.connection, [])).toEqual([]);
  });
});

describe('adoptSends', () => {
  it('makes unknown what was forgotten, says which, and does nothing a second time', async () => {
    await makeLedger();
    const sends = [aSend('gone'), aSend('p'), aSend('q')];
    expect(await adoptSends(account.connection, sends, ANN)).toEqual(['gone', 'q']);
    expect(await account.ledger.get('gone')).toMatchObject({
      state: 'unknown',
      attempt: 1,
      paymentId: 7,
      amount: '12.5',
      addressTo: 'wallet-1',
      history: [{ to: 'unknown', by: 'ann', reason: 'restored a copy' }],
    });
    expect((await account.ledger.get('q'))?.state).toBe('unknown');
    expect((await account.ledger.get('p'))?.state).toBe('sending');
    const before = await account.dump();
    expect(await adoptSends(account.connection, sends, ANN)).toEqual([]);
    expect(await account.dump()).toEqual(before);
  });

  it('takes in more sends than go over the wire together', async () => {
    const sends = Array.from({ length: 501 }, (_, index) => aSend(`gone-${index}`));
    expect(await adoptSends(account.connection, sends, ANN)).toEqual(sends.map(({ payoutId }) => payoutId));
  });
});

describe('adoptLedger', () => {
  it('raises the ledger above the witness and says where it is now', async () => {
    await makeLedger();
    expect(await adoptLedger(account.connection, { epoch: 5, sends: 9 }, ANN)).toEqual({ epoch: 6, sends: 9 });
    const [event] = await account.redis.xrevrange(account.connection.keys.events, '+', '-', 'COUNT', 1);
    expect(event?.[1]).toEqual(expect.arrayContaining(['ledger_adopted', 'ann', 'restored a copy']));
  });

  it('lifts the pause of the journal, and no other', async () => {
    await account.ledger.pause('send journal', 'an older copy');
    await adoptLedger(account.connection, { epoch: 1, sends: 1 }, ANN);
    expect((await readLedger(account.connection)).pausedReason).toBeUndefined();
    await account.ledger.pause('bob', 'lunch');
    await adoptLedger(account.connection, { epoch: 1, sends: 1 }, ANN);
    expect((await readLedger(account.connection)).pausedReason).toBe('lunch');
  });

  it('does not lift the pause of a person that took the place of the journal’s', async () => {
    expect(JOURNAL_WITNESS).toBe('send journal');
    expect(await account.ledger.pause(JOURNAL_WITNESS, 'an older copy')).toBe(true);
    expect(await account.ledger.pause(JOURNAL_WITNESS, 'again')).toBe(false);
    expect((await readLedger(account.connection)).pausedReason).toBe('an older copy');
    expect(await account.ledger.pause('bob', 'let me look')).toBe(true);
    expect(await account.ledger.pause(JOURNAL_WITNESS, 'again')).toBe(false);
    await adoptLedger(account.connection, { epoch: 1, sends: 1 }, ANN);
    expect((await readLedger(account.connection)).pausedReason).toBe('let me look');
  });
});
