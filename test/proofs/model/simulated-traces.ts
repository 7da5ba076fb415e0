import { setImmediate as nextTurn } from 'node:timers/promises';
import { Random } from '../../doubles/random.js';
import { makePlan } from '../simulation/plan.js';
import { plant } from '../simulation/planted/mistakes.js';
import { runSeed } from '../simulation/simulation.js';
import { toTrace, type Trace } from './traces.js';

/** Runs the first `seeds` seeds from `from` on that have one journal, and a Redis that forgets nothing. */
export async function* simulatedTraces(from: number, seeds: number, planted?: string): AsyncGenerator<Trace> {
  const pieces = plant(planted);
  for (let [seed, made] = [from, 0]; made < seeds; seed += 1) {
    if (!isModelled(seed)) continue;
    await nextTurn();
    const { actions } = await runSeed(seed, { logging: true, pieces });
    if (actions !== undefined) yield toTrace(`seed ${seed}`, actions);
    made += 1;
  }
}

function isModelled(seed: number) {
  const { hosts, times } = makePlan(new Random(seed));
  return hosts === 1 && times.rollback + times.flush + times.deposed === 0;
}
