import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Pieces } from '../../world/worker.js';
import { replay, type Replayed, whyNot } from './replay.js';
import { drawWalks, type Walk } from './walks.js';

const LENGTH = 25;
const AT_ONCE = 25;
/** Of all that are drawn, so many must come to their end. */
const LEAST_SHARE = 0.5;

export interface ReplayedWalks {
  /** Came to their end, where code and model were the same. */
  readonly same: number;
  readonly steps: number;
  /** How many could not be followed to their end, by the reason. */
  readonly left: ReadonlyMap<string, number>;
  readonly broken: readonly Broken[];
  readonly replayed: readonly Replayed[];
}

type Broken = Readonly<{ name: string; what: string; lines: readonly string[] }>;

/** Draws walks of the model until so many came to their end on the real code, or one differs. */
export async function replayWalks(
  model: string,
  from: number,
  wanted: number,
  pieces: Pieces | undefined,
): Promise<ReplayedWalks> {
  const left = new Map<string, number>();
  const broken: Broken[] = [];
  const replayed: Replayed[] = [];
  let [same, steps] = [0, 0];
  const isOver = () => same === wanted || broken.length > 0;
  const follow = async (walk: Walk) => {
    const result = await replay(walk, pieces);
    replayed.push(result);
    steps += result.steps;
    const next = walk.steps[result.steps];
    const reason = result.left !== undefined && next !== undefined ? whyNot(next, result.left) : undefined;
    const what =
      result.broken ??
      (result.left === undefined || reason !== undefined ? undefined : `"${next?.rule}": ${result.left}`);
    if (what !== undefined) broken.push({ name: walk.name, what, lines: result.lines });
    else if (reason === undefined) same += 1;
    else left.set(reason, (left.get(reason) ?? 0) + 1);
  };
  for (let first = from; !isOver(); first += AT_ONCE) {
    for (const walk of await drawWalks(model, first, Math.min(AT_ONCE, Math.max(1, 2 * wanted)), LENGTH)) {
      await nextTurn();
      if (!isOver()) await follow(walk);
    }
    if (broken.length === 0 && same < LEAST_SHARE * replayed.length)
      broken.push({ name: 'the walks', what: `only ${same} of ${replayed.length} came to their end`, lines: [] });
  }
  return { same, steps, left, broken, replayed };
}
