import { beforeEach, describe, expect, it } from '@jest/globals';
import { IntentSigner } from '../../../src/control/intents/intent-signer.js';
import { SignedAuthority } from '../../../src/control/worker/signed-authority.js';
import type { JournalLine } from '../../../src/journal/journal-line.js';
import { type ActiveSender, sendUntilDecided } from '../../../src/worker/sender/send-until-decided.js';
import { keyEntry, keyringOf, TEST_AUDIENCE, testKey } from '../../control/support/keys.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { JOURNAL, NO_BREAKER } from '../../ledger/contract/ledger-rig.js';
import { aPayout } from '../../ledger/support/a-payout.js';
import { cutFromRedis, type LoopRig, LoopWorld } from '../support/loop-rig.js';
import { DAY_MS, journaled, LEASE_MS, throwing, UNAVAILABLE } from '../support/send-rig.js';

let world: LoopWorld;
beforeEach(() => {
  world = new LoopWorld();
});

describe('a role whose journal does not agree with the ledger, before it has the lease', () => {
  const other = (given: object = {}): JournalLine => ({
    ...{ ledgerId: 'ledger-0', epoch: 3, sends: 7, token: 'seventh', ...given },
  });
  const EMPTY = { ledgerId: 'ledger-1', sends: 0, token: '' };
  const startHolder = async () => {
    const holder = world.start({ name: 'holder' });
    await world.advance(LEASE_MS + 1_000);
    return holder;
  };

  it('takes no lease, says so once, and records one objection, until it agrees', async () => {
    const one = world.make();
    one.journal.given(other(), journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    let recorded = 0;
    one.before.object = () => void (recorded += 1);
    one.start();
    await world.advance(LEASE_MS + 30_000);
    const reason = expect.stringContaining('flushed or exchanged');
    expect([one.loop.status, await world.lease()]).toEqual([{ role: 'refused', reason }, undefined]);
    expect(await world.objections()).toEqual([
      expect.objectContaining({ journalId: 'j-one', kind: 'ledger', reason, host: 'host-one', dir: '/one', sends: 7 }),
    ]);
    expect({ recorded, errors: one.errors().length }).toEqual({ recorded: 1, errors: 1 });

    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 0, sends: 9 }));
    await world.advance(LEASE_MS);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringContaining('older copy') });
    expect({ recorded, errors: one.errors().length }).toEqual({ recorded: 1, errors: 2 });

    one.journal.lines.length = 1;
    const read = [{ ...JOURNAL, journalId: 'j-one' }];
    await world.ledger.adoptLedger({ epoch: 0, sendCount: 7 }, { read, givenUp: [] });
    await world.advance(5_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(LEASE_MS + 3_000);
    expect(one.loop.status).toMatchObject({ role: 'sender' });
  });

  it('objects from memory where the disk hangs, and stops nobody without an objection', async () => {
    const one = world.make();
    one.journal.given(other({ ...EMPTY, epoch: 0 }));
    one.journal.isStalled = true;
    one.start();
    await world.advance(LEASE_MS + 10_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: 'the disk has not answered' });
    expect([await world.lease(), await world.objections()]).toEqual([undefined, []]);
    one.journal.given(journaled({ payoutId: 'p', attempt: 1, token: 'mine' }));
    await world.advance(10_000);
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect(await world.lease()).toBeUndefined();
  });

  it('records its objection while another process holds the lease, too', async () => {
    const holder = await startHolder();
    const one = world.make();
    one.journal.given(other({ ledgerId: 'ledger-1' }));
    one.start();
    await world.advance(1_000);
    expect(await world.objections()).toMatchObject([{ journalId: 'j-one', kind: 'ledger' }]);
    expect(holder.loop.status).toMatchObject({ role: 'sender' });
  });

  it('compares the ledger with what the journal said before it', async () => {
    await startHolder();
    const one = world.make();
    one.journal.given(other({ ...EMPTY, epoch: 1 }));
    let wasRead = false;
    one.journal.onReload = () => void (wasRead = true);
    one.after.readSender = async () => {
      if (!wasRead) return;
      one.after.readSender = () => undefined;
      one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 1, sends: 1, token: 'of the holder' }));
      await one.journal.reload();
    };
    one.start();
    await world.advance(1_000);
    expect(await world.objections()).toEqual([]);
    // The ledger never learns of that send: the next comparison tells.
    await world.advance(10_000);
    expect(await world.objections()).toHaveLength(1);
  });

  it('compares again every ten seconds while it stands by', async () => {
    await startHolder();
    const one = world.start();
    await world.advance(1_500);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1' }));
    await world.advance(7_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
    await world.advance(4_000);
    expect(one.loop.status).toMatchObject({ role: 'refused' });
  });

  it.each([
    ['cannot be read', /EACCES/],
    ['was damaged while it was in use', /was damaged/],
    ['lost entries that the ledger knows of', /lacks its last entries/],
  ])('refuses by itself where the journal %s, records no objection, and heals', async (what, reason) => {
    // The ledger knows that the journal had an entry.
    const known = { journalId: 'j-one', sends: 1, token: 'first', at: world.clock.wallNow() };
    const { attempt } = await world.earlierSend({ payoutId: 'q', ...known });
    const one = world.make();
    if (what.startsWith('cannot')) one.journal.onReload = throwing('EACCES');
    else if (what.startsWith('was')) one.journal.damage();
    else one.journal.given(other({ ...EMPTY, epoch: 0 }));
    one.start();
    await world.advance(LEASE_MS + 2_000);
    expect(one.loop.status).toEqual({ role: 'refused', reason: expect.stringMatching(reason) });
    expect(await world.objections()).toEqual([]);
    expect(one.errors()).toHaveLength(1);
    const two = world.start({ name: 'two' });
    await world.advance(LEASE_MS + 5_000);
    expect(two.loop.status).toMatchObject({ role: 'sender' });

    one.journal.onReload = () => undefined;
    one.journal.damage(false);
    one.journal.othersWrite(other({ ledgerId: 'ledger-1', epoch: 1, sends: 1, token: attempt.token }));
    await world.advance(5_000);
    expect(one.loop.status).toEqual({ role: 'standby' });
  });
});

// Host B, of which the ledger says that it sent last, takes the lease at once; A, which has sent p1, is back later.
it.each([0, 1_500, 3_000])(
  'a Redis that comes back without the sends of a host has nothing sent twice, its link back %i ms later',
  async (ms) => {
    const settings = { quarantineMs: 10_000 };
    const journalOfB = new MemoryJournal('j-B');
    for (const id of ['p0', 'p1']) world.ledger.enqueue(aPayout(id));
    const first = world.make({ name: 'B', journal: journalOfB, ...settings, work: world.sendQueued('p0') });
    first.gateway.outcome = { kind: 'accepted', txhash: 'h0', durationMs: 100 };
    first.start();
    await world.advance(LEASE_MS + 15_000);
    expect(await world.stateOf('p0')).toBe('in_progress');
    first.stop.abort();
    await first.ended();
    const copy = world.ledger.snapshot();

    const a = world.start({ name: 'A', ...settings, work: world.sendQueued('p1') });
    await world.advance(LEASE_MS + 15_000);
    expect(await world.stateOf('p1')).toBe('in_progress');
    const b = world.start({ name: 'B2', journal: journalOfB, ...settings, work: world.sendQueued('p1') });
    await world.advance(2_000);
    const [joinA, joinB] = [cutFromRedis(a), cutFromRedis(b)];
    await world.advance(2_000);
    world.ledger.restore(copy);
    joinB();
    await world.advance(ms);
    joinA();
    await world.advance(60_000);
    expect([a, b].map(({ gateway }) => gateway.arrivals.length)).toEqual([1, 0]);
  },
);

describe('a response that only the journal of one host knows', () => {
  // It came when Redis was unavailable, and its process had to end.
  let journal: MemoryJournal;
  let b: LoopRig;
  beforeEach(async () => {
    const { epoch, attempt } = await world.earlierSend({ journalId: 'j-A' });
    const { ledgerId } = await world.ledger.readSender();
    const outcome = { kind: 'accepted', txhash: 'h' } as const;
    journal = new MemoryJournal('j-A', [
      ...[{ ledgerId, epoch, sends: 0, token: '' }, journaled(attempt), { ...attempt, outcome, at: 0 }],
    ]);
    b = world.start({ name: 'B' });
    await world.advance(LEASE_MS + 5_000);
    expect(await world.stateOf('p')).toBe('unknown');
  });

  it('is told to the ledger while another host has the lease', async () => {
    const a = world.start({ name: 'A', journal });
    await world.advance(60_000);
    expect([a.loop.status.role, await world.stateOf('p')]).toEqual(['standby', 'in_progress']);
  });

  it('is told once Redis responds again', async () => {
    const a = world.make({ name: 'A', journal });
    a.before.finishSend = throwing(UNAVAILABLE);
    a.start();
    await world.advance(20_000);
    expect(await world.stateOf('p')).toBe('unknown');
    a.before.finishSend = () => undefined;
    await world.advance(30_000);
    expect([await world.stateOf('p'), a.errors()]).toEqual(['in_progress', []]);
  });

  it('keeps nobody from sending where Redis refuses it, and that is said', async () => {
    b.stop.abort();
    await b.ended();
    const a = world.make({ name: 'A', journal });
    a.before.finishSend = throwing('ERR wrong kind of value');
    a.start();
    await world.advance(60_000);
    expect(a.loop.status.role).toBe('sender');
    expect(a.said).toContain('error cannot record an outcome of the send journal');
  });
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
  const journal = new MemoryJournal(`j-${name}`, [{ v: 3, journalId: `j-${name}`, bornAt: clock.wallNow() }]);
  const keyring = keyringOf(keyEntry(SHOP));
  const authority = new SignedAuthority({ platformId: PLATFORM_ID, keyring, journal, clock, doubtMs: 11_000 });
  const rig = world.make({ name, journal, authority, resumeAuthority: authority, work: sendAll });
  let sent = 0;
  Object.defineProperty(rig.gateway, 'outcome', {
    get: () => ({ kind: 'accepted', txhash: `${name}-${(sent += 1)}`, durationMs: 50 }),
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
    expect(rig.errors()).toHaveLength(1);

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
    await world.ledger.finishSend(attempt, { kind: 'accepted', txhash: 'h' }, NO_BREAKER, 0);
    const rig = world.start({ journal: new MemoryJournal('j-new', [{ v: 3, journalId: 'j-new', bornAt: 1 }]) });
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
