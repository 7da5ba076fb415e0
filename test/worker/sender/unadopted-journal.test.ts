import { beforeEach, describe, expect, it } from '@jest/globals';
import { SignedAuthority } from '../../../src/control/worker/signed-authority.js';
import { UnreadableRecordError } from '../../../src/base/errors.js';
import { cannotKnow } from '../../../src/worker/sender/journal-audit.js';
import type { SendAuthority } from '../../../src/worker/sender/send-authority.js';
import { type ActiveSender, sendUntilDecided } from '../../../src/worker/sender/send-until-decided.js';
import { keyEntry, keyringOf, TEST_AUDIENCE, testKey } from '../../control/support/keys.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { JOURNAL, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { LoopWorld } from '../support/loop-rig.js';
import { DAY_MS, LEASE_MS, UNAVAILABLE } from '../support/send-rig.js';
import { IntentSigner } from '../../control/support/sign-at-once.js';

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});

const PLATFORM_ID = 4242;
const SHOP = testKey(1);

const COMPLETE = { complete: { at: 1, by: 'ann', reason: 'compared with the gateway' } };

const states = () => world.ledger.payouts().map(({ state }) => state);

async function sendAll(active: ActiveSender, end: AbortSignal) {
  while (!end.aborted) {
    const queued = world.ledger.payouts().filter(({ state }) => state === 'queued');
    for (const { payoutId } of queued) await sendUntilDecided(payoutId, active, end);
    await world.clock.sleep(200, end);
  }
}

function enqueueSigned(payoutIds: string, ageMs = 0, privateKey = SHOP) {
  const clock = { wallNow: () => world.clock.wallNow() - ageMs };
  const key = { name: 'shop', privateKey };
  const signer = new IntentSigner({ key, platformId: PLATFORM_ID, audience: TEST_AUDIENCE, clock });
  for (const payoutId of payoutIds.split(' ')) {
    const payout = aPayout(payoutId, { addressTo: `wallet-${payoutId}` });
    world.ledger.enqueue({ ...payout, signed: signer.sign(payout) });
  }
}

/** A worker that asks for signatures, whose journal begins now. */
function startSigned(name: string) {
  const { clock } = world;
  const journal = new MemoryJournal(`j-${name}`, [{ v: 1, journalId: `j-${name}`, bornAt: clock.wallNow() }]);
  const keyring = keyringOf(keyEntry(SHOP));
  const authority = new SignedAuthority({ platformId: PLATFORM_ID, keyring, journal, clock });
  const rig = world.make({ name, journal, authority, resumeAuthority: authority, work: sendAll });
  let sent = 0;
  Object.defineProperty(rig.gateway, 'outcome', {
    get: () => ({ kind: 'accepted', gatewayId: `${name}-${(sent += 1)}`, durationMs: 50 }),
  });
  rig.start();
  return rig;
}

const WAITS = { role: 'refused', reason: expect.stringContaining('payouts audit adopt-journal') as unknown };

describe('a worker with a keyring, whose journal was not adopted', () => {
  it('takes no lease, and holds none, while payouts wait that are older than its journal', async () => {
    enqueueSigned('p q r', 1_000);
    const rig = startSigned('b');
    await world.advance(LEASE_MS + 60_000);
    expect([rig.loop.status, world.ledger.lease]).toEqual([WAITS, undefined]);
    expect(states()).toEqual(Array(3).fill('queued'));
    expect(rig.errors()).toEqual([expect.stringContaining('its send journal cannot know')]);

    rig.journal.othersWrite(COMPLETE);
    await world.advance(LEASE_MS + 30_000);
    expect(states()).toEqual(Array(3).fill('in_progress'));
    expect(rig.loop.status).toMatchObject({ role: 'sender' });
  });

  it('holds a single older payout that no other journal could know, and sends the others', async () => {
    const rig = startSigned('b');
    await world.advance(LEASE_MS + 1_000);
    enqueueSigned('old', DAY_MS);
    enqueueSigned('p');
    await world.advance(10_000);
    expect([await world.stateOf('old'), await world.stateOf('p')]).toEqual(['held', 'in_progress']);
    expect(rig.loop.status).toMatchObject({ role: 'sender' });
  });

  it('is not stopped by records that no producer signed, however old', async () => {
    enqueueSigned('p q r', DAY_MS, testKey(9));
    const rig = startSigned('b');
    await world.advance(LEASE_MS + 10_000);
    expect(rig.loop.status).toMatchObject({ role: 'sender' });
    expect(states()).toEqual(Array(3).fill('held'));
  });

  it('gives the lease back where several come, and holds none', async () => {
    const rig = startSigned('b');
    await world.advance(LEASE_MS + 1_000);
    enqueueSigned('p q r', DAY_MS);
    await world.advance(60_000);
    expect(rig.loop.status).toEqual(WAITS);
    expect(world.ledger.lease).toMatchObject({ released: true });
    expect([...states(), world.ledger.isObjectedTo]).toEqual([...Array<string>(3).fill('queued'), false]);
  });

  it('waits for a single older payout where the journal of another host may know it', async () => {
    const first = startSigned('a');
    first.journal.othersWrite(COMPLETE);
    enqueueSigned('p');
    await world.advance(LEASE_MS + 5_000);
    expect(await world.stateOf('p')).toBe('in_progress');
    first.stop.abort();
    await first.ended();
    const second = startSigned('b');
    await world.advance(LEASE_MS + 1_000);
    enqueueSigned('q', DAY_MS);
    await world.advance(5_000);
    expect([second.loop.status, await world.stateOf('q')]).toEqual([WAITS, 'queued']);
  });
});

describe('a worker without a keyring, whose journal is empty', () => {
  async function startAfter(host: string) {
    const { attempt } = await world.earlierSend({ journalId: 'j-lost', host, dir: '/lost' });
    await world.ledger.finishSend(attempt, { kind: 'accepted', gatewayId: 'h' }, NO_BREAKER, 0);
    const rig = world.start({ journal: new MemoryJournal('j-new', [{ v: 1, journalId: 'j-new', bornAt: 1 }]) });
    await world.advance(LEASE_MS + 30_000);
    return rig;
  }

  it('waits where another journal of this host has sends, until the new one is adopted', async () => {
    const rig = await startAfter('host-one');
    expect(rig.loop.status).toEqual(WAITS);
    expect(rig.loop.status).toMatchObject({ reason: expect.stringContaining('j-lost in /lost') });
    expect(world.ledger.isObjectedTo).toBe(false);
    rig.journal.othersWrite(COMPLETE);
    await world.advance(LEASE_MS + 15_000);
    expect(rig.loop.status).toMatchObject({ role: 'sender' });
  });

  it('sends where only other hosts have sent', async () => {
    expect((await startAfter('host-of-another-container')).loop.status).toMatchObject({ role: 'sender' });
  });
});

it('counts what is older than the journal, and neither other refusals nor records that cannot be read', async () => {
  const permit = ({ payoutId }: { readonly payoutId: string }) => ({
    ...{ kind: 'refused', hold: { reason: payoutId.startsWith('old') ? 'before_birth' : 'expired' } },
  });
  const ask = async (found: readonly string[], others: number, atTurn?: string) => {
    const senderLedger = {
      findSignedBefore: async () => Promise.resolve([...found]),
      async readPayout(payoutId: string) {
        if (payoutId === 'damaged') throw new UnreadableRecordError(payoutId, new Error('no JSON'));
        if (payoutId === 'away') throw UNAVAILABLE;
        return Promise.resolve({ ...aPayout(payoutId), payoutId } as never);
      },
    };
    const authority = { permit } as unknown as SendAuthority;
    const journals = Array.from({ length: others }, (_, index) => ({ ...JOURNAL, journalId: `j-${index}` }));
    return cannotKnow({ senderLedger, journal: { bornAt: 1, journalId: 'j-mine' }, authority }, journals, atTurn);
  };
  expect(await ask(['expired', 'damaged', 'old-1'], 0)).toBe(false);
  expect(await ask(['expired', 'damaged', 'old-1', 'old-2'], 0)).toBe(true);
  expect(await ask(['expired', 'damaged', 'old-1'], 1)).toBe(true);
  expect(await ask(['expired', 'damaged'], 1)).toBe(false);
  expect(await ask(['old-1'], 0, 'old-1')).toBe(false);
  expect(await ask(['old-2'], 0, 'old-1')).toBe(true);
  await expect(ask(['away'], 0)).rejects.toBe(UNAVAILABLE);
});
