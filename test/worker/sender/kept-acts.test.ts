import { beforeEach, expect, it } from '@jest/globals';
import { carryOutAdoption, planAdoption, type AdoptableJournal } from '../../../src/operator/adoption.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { HOLD } from '../../ledger/contract/ledger-rig.js';
import { makeSendRig, type SendRig } from '../support/send-rig.js';

/** What people do while a worker runs: a Redis that comes back older must not undo it. */

let rig: SendRig;
beforeEach(async () => {
  rig = await makeSendRig();
});

const FRAUD = { by: 'ann', reason: 'fraud' };
const cancel = async (payoutId = 'p') => rig.ledger.change({ payoutId, from: 'queued', to: 'cancelled', ...FRAUD });
const keep = async () => rig.recovery.checkLedger();

it('a cancellation is in the journal with its payment, its person and the count of acts', async () => {
  await cancel();
  expect(await keep()).toBeUndefined();
  const request = { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' };
  const ended = [{ payoutId: 'p', state: 'cancelled', at: expect.any(Number), ...FRAUD, request }];
  expect(rig.journal.lines.at(-1)).toEqual({ acts: { at: expect.any(Number), count: 1, ended } });
  expect([rig.journal.hasEnded('p'), rig.journal.hasEnded('q')]).toEqual([true, false]);
  expect([rig.ledger.ofLedger('keptActs'), (await rig.ledger.readUnkept(10)).entries]).toEqual(['1', []]);
  // Nothing happened since: nothing is written.
  const { length } = rig.journal.lines;
  await keep();
  expect(rig.journal.lines).toHaveLength(length);
});

it('one by the application, which names no person, and a write-off are kept too', async () => {
  rig.gateway.outcome = { kind: 'unknown', reason: 'silence', durationMs: 1 };
  await rig.send('p');
  await rig.ledger.change({ payoutId: 'q', from: 'queued', to: 'cancelled' });
  await rig.ledger.change({ payoutId: 'p', from: 'unknown', to: 'written_off', ...FRAUD });
  expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
  const ended = [
    { payoutId: 'p', state: 'written_off' },
    { payoutId: 'q', by: '' },
  ];
  expect(rig.journal.lines.at(-1)).toMatchObject({ acts: { ended } });
});

it('what the journal could not take is tried again', async () => {
  await cancel();
  rig.journal.failWith = new Error('no space left');
  await expect(keep()).rejects.toThrow('no space left');
  expect((await rig.ledger.readUnkept(10)).entries).toEqual(['p']);
  rig.journal.failWith = undefined;
  await keep();
  expect(rig.journal.hasEnded('p')).toBe(true);
});

it('many are kept line by line, and the count only with the last of them', async () => {
  const payoutIds = Array.from({ length: 150 }, (_, index) => `many-${index}`);
  for (const payoutId of payoutIds) {
    rig.ledger.enqueue({ payoutId, paymentId: 7, amount: '1', addressTo: 'wallet-1' });
    await cancel(payoutId);
  }
  await keep();
  const noted = rig.journal.lines.flatMap((line) =>
    'acts' in line ? [[line.acts.count, line.acts.ended.length]] : [],
  );
  expect(noted).toEqual([
    [0, 100],
    [150, 50],
  ]);
});

it('a ledger that knows fewer acts than the journal is an older one, although no send is missing', async () => {
  const older = rig.ledger.snapshot();
  await cancel();
  await keep();
  rig.ledger.restore(older);
  const reason = expect.stringMatching(/older .* knows 0 acts of people, .* the journal 1\.$/);
  expect(await keep()).toEqual({ kind: 'ledger', reason });
  expect(rig.ledger.stateOf('p')).toBe('queued');
});

it('each send notes the count of acts, and the next look what they were about', async () => {
  await cancel('q');
  await keep();
  await cancel();
  rig.ledger.enqueue({ payoutId: 'r', paymentId: 7, amount: '1', addressTo: 'wallet-1' });
  await rig.expectSent('r');
  expect(rig.journal.lines.find((line) => 'request' in line)).toMatchObject({ payoutId: 'r', knownActs: 2 });
  expect(rig.journal.acts).toBe(2);
  expect(rig.journal.hasEnded('p')).toBe(false);
  expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
  expect(rig.journal.hasEnded('p')).toBe(true);
});

it('the count of acts is in the journal only after the rejections among them', async () => {
  const steps: unknown[] = [];
  const keepRejections = async (payouts: readonly Payout[] = []) => {
    steps.push(payouts.map(({ payoutId }) => payoutId));
    steps.push(rig.journal.acts);
    return Promise.resolve();
  };
  rig = await makeSendRig({ authority: { permit: () => ({ kind: 'granted' }), keepRejections } });
  await cancel('q');
  const rejection = {
    audience: 'a',
    decision: 'reject',
    by: 'ann',
    reason: 'no',
    at: '2030-01-01T00:00:00.000Z',
    payoutId: 'p',
  };
  const [text, held] = [{ ...rejection, intent: '', signature: 's' }, HOLD].map((each) => JSON.stringify(each));
  const { run, keys } = rig.ledger.connection;
  const signed = { at: 1, decision: 'reject', by: 'ann', reason: 'no', approval: text ?? '', held: held ?? '' };
  const args = { ...signed, field: `rejection:${'a'.repeat(64)}`, most: 10, source: '' };
  expect(await run('add-approval', args, [keys.payout('p')])).toBe(1);
  expect((await rig.ledger.readUnkept(9)).entries).toEqual([expect.stringMatching(/^rejection:a{64} p$/), 'q']);
  expect(await rig.sender.recovery.checkLedger()).toBeUndefined();
  expect(steps).toEqual([['p'], 0]);
  // A rejection and its hold are two.
  expect([rig.journal.acts, (await rig.ledger.readUnkept(9)).entries]).toEqual([3, []]);
});

it('a begin on a ledger that lost an act, and no send, is refused and told', async () => {
  const older = rig.ledger.snapshot();
  await cancel('q');
  await keep();
  rig.ledger.restore(older);
  const reason = expect.stringMatching(
    /^Redis came back older than it was: it knows 0 acts of people, .* the journal 1\.$/,
  );
  expect(await rig.send()).toEqual({ kind: 'ledger_mismatch', mismatch: { kind: 'ledger', reason } });
  rig.expectNothingSent();
  expect(rig.ledger.stateOf('p')).toBe('queued');
});

it('the sender holds what the journal has as cancelled, whatever Redis says', async () => {
  await rig.journal.noteActs({
    at: 0,
    count: 0,
    ended: [
      {
        payoutId: 'p',
        state: 'cancelled',
        at: 0,
        ...FRAUD,
        request: { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
      },
    ],
  });
  expect(await rig.send()).toEqual({ kind: 'skipped', state: 'held' });
  expect(await rig.ledger.readPayout('p')).toMatchObject({ held: { kind: 'journal', reason: 'ended_before' } });
  rig.expectNothingSent();
});

async function adopt() {
  const { journal, ledger } = rig;
  const adoptable: AdoptableJournal = {
    ...{ journalId: journal.journalId, ledger: journal.ledger, acts: journal.acts, peers: journal.peers },
    location: { host: 'host-1', dir: '/journal' },
    lastSends: (limit) => journal.lastSends(limit),
    items: async function* () {
      for (const line of journal.lines) if ('acts' in line || 'request' in line) yield await Promise.resolve(line);
    },
    bind: journal.bind,
    notePeers: journal.notePeers,
  };
  const plan = await planAdoption(ledger, [adoptable], []);
  const context = { actor: { by: 'bob', reason: 'backup' }, at: 0, inFlightMaxMs: 30_000 };
  return { plan, adoption: await carryOutAdoption(ledger, [adoptable], plan, context) };
}

it('an adoption cancels again what came back queued, and what the ledger does not know at all', async () => {
  const older = rig.ledger.snapshot();
  rig.ledger.enqueue({ payoutId: 'later', paymentId: 7, amount: '3', addressTo: 'wallet-3' });
  await cancel();
  await cancel('later');
  await keep();
  rig.ledger.restore(older);
  const { plan, adoption } = await adopt();
  expect(plan).toMatchObject({ isOlder: true, highest: { acts: 2 } });
  const putBack = ['later', 'p'].map((payoutId) => ({ payoutId, state: 'cancelled' }));
  expect(adoption).toMatchObject({ putBack, adopted: [], held: 0 });
  const reason = 'cancelled before by ann: fraud; backup';
  expect((await rig.ledger.readPayout('p'))?.history.at(-1)).toMatchObject({ to: 'cancelled', by: 'bob', reason });
  // The application enqueues what it misses: that must not pay it.
  rig.ledger.enqueue({ payoutId: 'later', paymentId: 7, amount: '3', addressTo: 'wallet-3' });
  expect([rig.ledger.stateOf('later'), rig.ledger.stateOf('q')]).toEqual(['cancelled', 'queued']);
  // The ledger counts on from what the journal knew, with the adoption itself.
  expect(await keep()).toBeUndefined();
  expect(Number(rig.ledger.ofLedger('acts'))).toBeGreaterThan(2);
  expect((await adopt()).plan.reasons).toEqual([]);
});

it('an adoption leaves open what a forgotten send may have paid', async () => {
  await cancel();
  await keep();
  const older = rig.ledger.snapshot();
  rig.ledger.restore(older);
  const { ledger } = rig.journal;
  const send = { payoutId: 'p', attempt: 1, token: 'forgotten', epoch: 1, sends: 1, after: { sends: 0, token: '' } };
  await rig.journal.append({
    ...send,
    request: { paymentId: 7, amount: '12.5', addressTo: 'wallet-1' },
    inFlightMs: 0,
    at: 0,
  });
  expect(ledger).toBeDefined();
  expect((await adopt()).adoption).toMatchObject({ adopted: [{ payoutId: 'p', state: 'unknown' }], putBack: [] });
});
