import { setImmediate as nextTurn } from 'node:timers/promises';
import { Random } from '../../doubles/random.js';
import { runScenario } from '../explore/explorer.js';
import {
  type Deviation,
  deviationsOf,
  isWaiting,
  mattersForRelease,
  type Schedule,
  scenarioOf,
  type Step,
} from '../explore/scenario.js';
import { plant } from '../simulation/planted/mistakes.js';
import { toTrace, type Trace } from './traces.js';

/** Those with one journal and one account. */
const SCENARIOS = ['slow', 'short-lease', 'cut-off', 'restart', 'plain'] as const;
/** A worker that starts again after each crash. */
const CRASHED = ['restart', 'single'] as const;
const DEVIATIONS_MAX = 2;

/** Runs one schedule for each number from `from` on, drawn from those that `npm run explore` searches. */
export async function* exploredTraces(from: number, schedules: number, planted?: string): AsyncGenerator<Trace> {
  for (let number = from; number < from + schedules; number += 1) {
    await nextTurn();
    const random = new Random(number);
    const scenario = SCENARIOS[number % SCENARIOS.length] ?? 'slow';
    let [schedule, run] = [[] as Schedule, await runOne(scenario, [], planted)];
    for (let count = random.whole(1, DEVIATIONS_MAX); count > 0; count -= 1) {
      const [last] = schedule.slice(-1);
      const after = Math.max(-1, last?.at ?? -1, last?.until ?? -1);
      const deviation = drawDeviation(random, run.steps, after);
      if (deviation === undefined) break;
      schedule = [...schedule, deviation];
      run = await runOne(scenario, schedule, planted);
      const until = isWaiting(deviation) && random.chance(0.8) ? drawRelease(random, run.steps, deviation) : undefined;
      if (until === undefined) continue;
      schedule = [...schedule.slice(0, -1), { ...deviation, until }];
      run = await runOne(scenario, schedule, planted);
    }
    yield toTrace(`schedule ${number} of ${scenario} ${JSON.stringify(schedule)}`, run.actions);
  }
}

/** Kills a worker before each step at which one can end. */
export async function* crashTraces(planted?: string): AsyncGenerator<Trace> {
  for (const scenario of CRASHED) {
    const { steps } = await runOne(scenario, [], planted);
    for (const step of steps.filter((each) => deviationsOf(each).includes('crash'))) {
      await nextTurn();
      const { actions } = await runOne(scenario, [{ at: step.index, kind: 'crash' }], planted);
      yield toTrace(`crash of ${scenario} before step ${step.index}, ${step.label}`, actions);
    }
  }
}

async function runOne(name: string, schedule: Schedule, planted?: string) {
  const run = await runScenario(scenarioOf(name), schedule, { logging: true, pieces: plant(planted) });
  if (run.actions === undefined) throw new Error('the run has no log');
  return { ...run, actions: run.actions };
}

function drawDeviation(random: Random, steps: readonly Step[], after: number): Deviation | undefined {
  const possible = steps.flatMap((step) =>
    step.index > after && step.mayDeviate
      ? deviationsOf(step).flatMap((kind) => (kind === 'rollback' ? [] : [{ at: step.index, kind }]))
      : [],
  );
  return possible.length === 0 ? undefined : random.pick(possible);
}

function drawRelease(random: Random, steps: readonly Step[], { at }: Deviation): number | undefined {
  const possible = steps.filter((step) => step.index > at + 1 && mattersForRelease(step));
  return possible.length === 0 ? undefined : random.pick(possible).index;
}
