import { describe, expect, it } from '@jest/globals';
import { begin, send, takeLease } from '../../ledger/contract/ledger-rig.js';
import { senderLedgerContract } from '../../ledger/sender-ledger-contract.js';
import { makeMemoryRig } from './memory-rig.js';

senderLedgerContract('MemoryLedger', () => makeMemoryRig());

describe('MemoryLedger as a Redis that fails', () => {
  it('comes back as it was when the snapshot was taken, as often as wanted', async () => {
    const rig = makeMemoryRig();
    const lease = await takeLease(rig.ledger, 'one');
    await rig.enqueue('p');
    const copy = rig.ledger.snapshot();
    const before = await rig.dump();
    for (let iteration = 0; iteration < 2; iteration += 1) {
      await begin(rig.ledger, lease, 'p');
      await send(
        rig,
        { owner: 'two', epoch: (await takeLease(rig.ledger, 'two')).epoch },
        {
          payoutId: 'q',
          result: { kind: 'accepted', txhash: 't' },
        },
      ).catch(() => undefined);
      rig.ledger.restore(copy);
      expect(await rig.dump()).toEqual(before);
    }
  });

  it('forgets everything when it is flushed, and has another id', async () => {
    const rig = makeMemoryRig();
    const { ledgerId } = await rig.ledger.readSender();
    await send(rig, await takeLease(rig.ledger, 'one'), {
      payoutId: 'p',
      result: { kind: 'accepted', txhash: 't' },
    });
    rig.ledger.flush();
    expect(rig.ledger.payouts()).toEqual([]);
    expect(await rig.ledger.readSender()).toMatchObject({
      ledgerId: 'ledger-2',
      lease: undefined,
      sendCount: 0,
      last: '',
      awaitingAnswer: false,
      journals: [],
    });
    expect(ledgerId).toBe('ledger-1');
  });

  it('is not adopted once it has come back to before a bookmark', async () => {
    const rig = makeMemoryRig();
    const { ledger } = rig;
    await rig.enqueue('p');
    const copy = ledger.snapshot();
    await rig.enqueue('q');
    const bookmark = await ledger.readBookmark();
    const adopt = async (): Promise<unknown> =>
      ledger.adoptLedger({ epoch: 1, sendCount: 1 }, { read: [], givenUp: [] }, undefined, [bookmark]);
    expect(await adopt()).toMatchObject({ epoch: 2 });
    ledger.restore(copy);
    await rig.enqueue('q');
    await expect(adopt()).rejects.toThrow('Redis came back older');
    ledger.flush();
    await expect(adopt()).rejects.toThrow('Redis came back older');
  });

  it('does the same for the same calls', async () => {
    const run = async (): Promise<unknown> => {
      const rig = makeMemoryRig();
      await send(rig, await takeLease(rig.ledger, 'one'), { payoutId: 'p', result: { kind: 'unknown', reason: 'r' } });
      return rig.dump();
    };
    expect(await run()).toEqual(await run());
  });
});
