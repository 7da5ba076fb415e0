import { beforeEach, describe, expect, it } from '@jest/globals';
import { GUARD_MS, IN_FLIGHT_MAX_MS, makeSendRig, HOLD_OFF_MS, type SendRig } from '../support/send-rig.js';

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

describe('checkLedger', () => {
  it('finds nothing wrong with the ledger that it knows', async () => {
    expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
    await rig.send('p');
    expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
  });

  it('finds an older copy, to which it does not report its last outcome', async () => {
    const older = rig.ledger.snapshot();
    await rig.send('p');
    rig.ledger.restore(older);
    rig.before.finishSend = () => {
      throw new Error('it should not be asked');
    };
    expect(await rig.sender.recovery.checkLedger()).toMatchObject({ kind: 'ledger' });
  });

  it('reports the last outcome again to a ledger that came back without it', async () => {
    let older = rig.ledger.snapshot();
    rig.after.beginSend = () => void (older = rig.ledger.snapshot());
    await rig.send('p');
    rig.ledger.restore(older);
    expect(await rig.stateOf()).toBe('sending');
    expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
    expect(await rig.stateOf()).toBe('in_progress');
  });
});

describe('resolveLeftovers', () => {
  it('leaves the send alone that is under way', async () => {
    rig.gateway.responseMs = 5_000;
    const sending = rig.sender.send('p', new AbortController().signal);
    await rig.clock.advance(HOLD_OFF_MS + 1_000);
    expect(rig.gateway.arrivals).toHaveLength(1);
    await rig.sender.recovery.resolveLeftovers();
    expect(await rig.stateOf()).toBe('sending');
    expect(await rig.clock.until(sending)).toMatchObject({ kind: 'sent' });
  });

  it('says until when the requests of the longest known time may be on their way', async () => {
    const view = { ...rig.heldLease.view, inFlightMs: 4 * IN_FLIGHT_MAX_MS };
    const patient = await makeSendRig({ senderLedger: rig.ledger, heldLease: { ...rig.heldLease, view } });
    await rig.begin('p');
    await patient.sender.recovery.resolveLeftovers();
    const resolve = { payoutId: 'p', from: 'unknown', to: 'queued', by: 'ann', reason: 'not there' } as const;
    expect(rig.ledger.change(resolve)).toMatchObject({
      kind: 'in_doubt',
      forMs: expect.closeTo((GUARD_MS + 4 * IN_FLIGHT_MAX_MS) * 1.001, -1),
    });
  });
});
