import { afterEach, expect, it } from '@jest/globals';
import { isComplete, UNWITNESSED } from '../../src/operator/adoption.js';
import { openAdoptionWorld, type AdoptionWorld, type SendingHost } from './support/adoption-world.js';

let world: AdoptionWorld | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

const INTERRUPTED = 'interrupted';
const CALLS =
  /^(readSender|findForgottenSends|object|adoptSends|putBackEnded|countSendable|holdSendable|adoptLedger|bind|notePeers)$/;

/** Throws instead of one of the calls that an adoption makes: all before it have taken effect. */
function interrupter(at: number | string) {
  const done: string[] = [];
  let calls = 0;
  const between = <Target extends object>(target: Target): Target =>
    new Proxy(target, {
      get(_, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function' || !CALLS.test(String(name))) return value;
        return async (...args: unknown[]): Promise<unknown> => {
          calls += 1;
          if (calls === at || name === at) throw new Error(INTERRUPTED);
          const reply: unknown = await Reflect.apply(value, target, args);
          done.push(String(name));
          return reply;
        };
      },
    });
  return { between, done };
}

interface Scenario {
  readonly read: readonly SendingHost[];
  readonly giveUp: readonly string[];
  readonly states: Readonly<Record<string, string>>;
}

/**
 * Redis comes back older; `a` and `b` have what it forgot.
 * @param isGap - the journal of `b` is lost, and the worker of `a` has objected
 */
async function makeScenario(isGap: boolean): Promise<[AdoptionWorld, Scenario]> {
  await world?.close();
  const made = (world = await openAdoptionWorld());
  const [a, b] = [await made.addHost('a'), await made.addHost('b')];
  await made.enqueue('P-1', 'P-2', 'P-3', 'P-4', 'P-5');
  const copy = await made.copy();
  await a.send('P-1', { kind: 'accepted', gatewayId: 'h-1' });
  await b.send('P-2', { kind: 'rejected', message: 'no funds' });
  await a.send('P-3');
  await a.noteCancelled('P-5');
  await made.putBack(copy);
  if (isGap) {
    const kept = { journalId: a.journalId, host: 'a', dir: a.dir, sends: 3, at: 1 };
    await made.sender.object({ ...kept, kind: 'ledger', reason: 'it forgot a send' });
  }
  const lost = isGap ? 'unknown' : undefined;
  return [
    made,
    {
      read: isGap ? [a] : [a, b],
      giveUp: isGap ? [UNWITNESSED] : [],
      states: {
        'P-1': 'in_progress',
        'P-2': lost ?? 'rejected',
        'P-3': 'unknown',
        'P-4': lost ?? 'queued',
        'P-5': 'cancelled',
      },
    },
  ];
}

async function expectEnded(made: AdoptionWorld, { read, states }: Scenario) {
  expect(await made.statesOf(...Object.keys(states))).toEqual(Object.values(states));
  await made.expectAgreement(...read);
}

/** @returns false when the adoption makes fewer calls */
async function interrupt(made: AdoptionWorld, { read, giveUp }: Scenario, at: number) {
  const { between, done } = interrupter(at);
  const isObjected = (await made.sender.readSender()).objections.length > 0;
  const error: unknown = await made.adopt(read, { giveUp, between }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error === undefined) return false;
  expect(error).toMatchObject({ message: INTERRUPTED });
  if (!isObjected && !done.includes('object')) expect(done).not.toContain('adoptSends');
  else if (!done.includes('adoptLedger')) expect(await read[0]?.tryBegin('P-4')).toBe('objected');
  return true;
}

it.each([
  ['every journal is read', false, true],
  ['sends are given up', true, true],
  ['sends are given up, but not when it is run again, which forgets nothing', true, false],
])('an adoption that is interrupted at any call stops the account until run again: %s', async (_, isGap, isSame) => {
  let at = 0;
  for (let isInterrupted = true; isInterrupted;) {
    const [made, scenario] = await makeScenario(isGap);
    isInterrupted = await interrupt(made, scenario, (at += 1));
    const plan = await made.plan(scenario.read, isSame ? scenario.giveUp : []);
    if (isSame && plan.reasons.length > 0) await made.adopt(scenario.read, { plan });
    if (isSame || plan.reasons.length === 0) {
      await expectEnded(made, scenario);
    } else {
      expect(isComplete(plan)).toBe(false);
      expect((await made.sender.readSender()).objections).not.toEqual([]);
    }
  }
  expect(at).toBeGreaterThan(10);
});
