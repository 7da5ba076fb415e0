import { describe, expect, it } from '@jest/globals';
import { SignedAuthority } from '../../../src/control/worker/signed-authority.js';
import type { Payout } from '../../../src/ledger/payout.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import { Random } from '../../doubles/random.js';
import { openGateway } from '../../world/links.js';
import { type Pieces, soundPieces } from '../../world/worker.js';
import { alterPayout, WorldLedger } from '../../world/world-ledger.js';
import { WorldProcess } from '../../world/world.js';
import { makePlan } from './plan.js';
import { signedMistakes } from './planted/control-mistakes.js';
import { plant } from './planted/mistakes.js';
import { FIRST_BIRTH, KEYRING, openControl, PLATFORM_ID, type SimControl } from './signed/control.js';
import { ChanceWorld, runSeed } from './simulation.js';
import { POLICED_SITUATIONS } from './situations.js';
import { openSignedUsers, type SignedRun } from './users.js';

const SEEDS = 40;
const FROM = 5_000_001;

describe('the simulation', () => {
  it(`keeps every promise in ${SEEDS} runs, in which payouts really are sent`, async () => {
    let arrivals = 0;
    for (let seed = FROM; seed < FROM + SEEDS; seed += 1) {
      const result = await runSeed(seed);
      expect({ seed, broken: result.broken }).toEqual({ seed, broken: undefined });
      arrivals += result.arrivals;
    }
    expect(arrivals).toBeGreaterThan(2 * SEEDS);
  });

  it('keeps the rules of a policy, which holds payouts that are sent in the end', async () => {
    const met = new Set<string>();
    for (let seed = FROM; seed < FROM + 15; seed += 1) {
      const result = await runSeed(seed, { policed: true });
      expect({ seed, broken: result.broken }).toEqual({ seed, broken: undefined });
      for (const situation of result.situations) met.add(situation);
    }
    // One seed in forty has it: `npm run simulate -- --policed` asks for it.
    const common = POLICED_SITUATIONS.filter((situation) => situation !== 'a rejection is removed from Redis');
    expect([...met]).toEqual(expect.arrayContaining(common));
  });

  it('takes the same steps for the same seed, also beside another run, and others for another seed', async () => {
    const [first, second, other] = await Promise.all([
      runSeed(FROM, { tracing: true }),
      runSeed(FROM, { tracing: true }),
      runSeed(FROM + 1, { tracing: true }),
    ]);
    expect(first.trace.length).toBeGreaterThan(20);
    expect(second).toEqual(first);
    expect(other.trace).not.toEqual(first.trace);
    expect(await runSeed(FROM)).toEqual({ ...first, trace: [] });
  });

  it.each([
    'pacing from the send instead of the response',
    'resend on timeout',
    'mark after the send',
    'recovery that requeues sending',
    'lease by expiry',
  ])('notices a planted mistake: %s', async (name) => {
    for (let seed = FROM; seed < FROM + SEEDS; seed += 1) {
      if ((await runSeed(seed, { pieces: plant(name) })).broken !== undefined) return;
    }
    throw new Error(`not noticed in ${SEEDS} runs`);
  });
});

const IN_FLIGHT_MS = 30_000;
const MISTAKE = 'Redis believed about how long a request is on its way';

/**
 * A request is on its way for as long as it may be. Meanwhile someone tells the operator through Redis that it has no
 * answer, and that nothing of it can arrive any more. The operator's clock is ahead by more than that.
 */
async function runDoubt(pieces: Pieces) {
  const world = new ChanceWorld(1, false);
  const drawn = makePlan(new Random(1));
  const plan = { ...drawn, settings: { ...drawn.settings, inFlightMaxMs: IN_FLIGHT_MS } };
  const isAhead = (control: SimControl) => {
    const { at } = JSON.parse(control.resumeAct()) as { at: string };
    return Date.parse(at) - control.wallNow > 2 * IN_FLIGHT_MS;
  };
  const control = Array.from({ length: 100 }, (_, seed) => openControl(seed, world, plan)).find(isAhead);
  if (control === undefined) throw new Error('no operator of these has such a clock');
  const clock = new WorldProcess({ world, name: 'w' });
  const ledger = new WorldLedger({ clock, nextLedgerId: () => 'ledger' });
  const journal = new MemoryJournal('journal', [{ v: 3, journalId: 'journal', bornAt: FIRST_BIRTH }]);
  const book = openGateway(world);
  const users = openSignedUsers({ pieces, book, redis: { ledger } } as SignedRun, control);
  const doubtMs = plan.settings.guardMs + IN_FLIGHT_MS;
  const authority = new SignedAuthority({ platformId: PLATFORM_ID, keyring: KEYRING, journal, clock, doubtMs });
  const send = async (attempt: number, arrivesAfterMs: number) => {
    const payout = ledger.payout('p1') as Payout;
    const permit = authority.permit(payout);
    if (permit.kind === 'refused') return;
    const { paymentId, amount, addressTo } = payout;
    const request = { paymentId, amount, addressTo };
    const line = {
      ...{ payoutId: 'p1', attempt, token: `t${attempt}`, epoch: 1, sends: attempt, at: clock.wallNow() },
      ...{ after: { sends: attempt - 1, token: '' }, request, signed: permit.signed },
    };
    await journal.append(line);
    control.book.journaled(clock, 'journal', line);
    world.after(arrivesAfterMs, () => book.arrive(request, false));
  };

  await journal.bind({ ledgerId: 'ledger', epoch: 1, sends: 0, token: '' });
  ledger.enqueue(control.payout('p1'));
  await send(1, IN_FLIGHT_MS);
  alterPayout(ledger, 'p1', { state: 'unknown', attempt: 1 });
  await world.runUntil(2_000);
  const payout = ledger.payout('p1') as Payout;
  if (users.mayStateUnsent(payout)) {
    const act = control.resendAct(payout);
    await ledger.change({ payoutId: 'p1', from: 'unknown', to: 'queued', by: 'ann', ...(act && { act }) });
    await send(2, 1);
  }
  await world.runUntil(2 * IN_FLIGHT_MS);
  return [book.arrivals, ledger.stateOf('p1')];
}

it('an operator states "not sent" by his own clock, whatever Redis says of a request on its way', async () => {
  expect(await runDoubt(soundPieces)).toEqual([1, 'unknown']);
  await expect(runDoubt(plant(MISTAKE, signedMistakes))).rejects.toThrow('twice: wallet-p1 was paid before');
});
