import { expect, it } from '@jest/globals';
import type { Payout } from '../../../../src/ledger/payout.js';
import { SignedAuthority } from '../../../../src/control/worker/signed-authority.js';
import { MemoryJournal } from '../../../doubles/memory-journal.js';
import { Random } from '../../../doubles/random.js';
import { alterPayout } from '../../../world/tamper.js';
import { WorldLedger } from '../../../world/world-ledger.js';
import { soundPieces } from '../pieces.js';
import { makePlan, type Plan } from '../plan.js';
import { signedMistakes } from '../planted/index.js';
import { SimGateway } from '../sim-gateway.js';
import { SimRedis } from '../sim-redis.js';
import { World } from '../world.js';
import { SignedUsers } from './signed-users.js';
import { FIRST_BIRTH, SimControl } from './sim-control.js';
import { KEYRING, PLATFORM_ID } from './sim-keys.js';

const IN_FLIGHT_MS = 30_000;
const MISTAKE = signedMistakes.find(({ name }) => name.startsWith('Redis believed about how long'));

/** An operator whose clock is ahead by more than a request may be on its way, as far as is assumed. */
function controlAhead(world: World, plan: Plan): SimControl {
  const candidates = Array.from({ length: 100 }, (_, seed) => new SimControl(seed, world, plan));
  const isAhead = (control: SimControl): boolean => {
    const { at } = JSON.parse(control.resumeAct()) as { at: string };
    return Date.parse(at) - control.wallNow > 2 * IN_FLIGHT_MS;
  };
  const found = candidates.find(isAhead);
  if (found === undefined) throw new Error('no operator of these has such a clock');
  return found;
}

/**
 * A request is on its way for as long as it may be. Meanwhile someone tells the operator through Redis that it has no answer,
 * and that nothing of it can arrive any more.
 */
async function runDoubt(signsInDoubt: boolean): Promise<{ arrivals: number; states: readonly string[] }> {
  const world = new World(1, false);
  const drawn = makePlan(new Random(1));
  const plan = { ...drawn, hosts: 1, settings: { ...drawn.settings, inFlightMaxMs: IN_FLIGHT_MS } };
  const control = controlAhead(world, plan);
  const clock = { wallNow: () => control.wallNow };
  const ledger = new WorldLedger({ clock, nextLedgerId: () => 'ledger' });
  const journal = new MemoryJournal('journal', [{ v: 3, journalId: 'journal', bornAt: FIRST_BIRTH }]);
  const gateway = new SimGateway(world);
  const users = new SignedUsers({
    ...{ world, redis: new SimRedis(world, plan, ledger), gateway, control, hosts: () => [], isAttacked: () => true },
    signsInDoubt,
  });
  const doubtMs = plan.settings.guardMs + IN_FLIGHT_MS;
  const authority = new SignedAuthority({ platformId: PLATFORM_ID, keyring: KEYRING, journal, clock, doubtMs });
  const payoutOfApp = control.payout('p1');
  const { paymentId, amount, addressTo } = payoutOfApp;
  const request = { paymentId, amount, addressTo };
  const read = async (): Promise<Payout> => (await ledger.readPayout('p1')) as Payout;
  let attempts = 0;
  const send = async (arrivesAfterMs: number): Promise<void> => {
    const permit = authority.permit(await read());
    if (permit.kind === 'refused') return;
    attempts += 1;
    const attempt = { payoutId: 'p1', attempt: attempts, token: `t${attempts}` };
    const line = { epoch: 1, sends: attempts, after: { sends: attempts - 1, token: '' }, at: control.wallNow };
    const entry = { ...attempt, ...line, request, signed: permit.signed };
    await journal.append(entry);
    control.book.journaled({ name: 'w' }, 'journal', entry);
    world.after(arrivesAfterMs, () => gateway.arrive(request, 'p1', false));
  };

  await journal.bind({ ledgerId: 'ledger', epoch: 1, sends: 0, token: '' });
  ledger.enqueue(payoutOfApp);
  await send(IN_FLIGHT_MS);
  alterPayout(ledger, 'p1', { state: 'unknown', attempt: 1 });
  await world.run(() => false, 2_000);

  const payout = await read();
  if (users.mayStateUnsent(payout)) {
    const act = users.signResend(payout);
    await ledger.change({
      payoutId: 'p1',
      from: 'unknown',
      to: 'queued',
      by: 'ann',
      ...(act !== undefined && { act }),
    });
    await send(1);
  }
  await world.run(() => false, 2 * IN_FLIGHT_MS);
  return { arrivals: gateway.arrivals, states: ledger.payouts().map(({ state }) => state) };
}

it('an operator states "not sent" by his own clock, whatever Redis says of a request on its way', async () => {
  expect(await runDoubt(soundPieces.signsInDoubt)).toEqual({ arrivals: 1, states: ['unknown'] });
});

it('where Redis is believed about that, the payout is paid twice', async () => {
  const { signsInDoubt } = { ...soundPieces, ...MISTAKE?.pieces };
  await expect(runDoubt(signsInDoubt)).rejects.toThrow('twice: p1 was paid before');
});
