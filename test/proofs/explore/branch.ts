import { serveTasks } from '../task-pool.js';
import { soundPieces, type Pieces } from '../../world/worker.js';
import { mistakes } from '../simulation/planted/index.js';
import { explore, type Bounds, type Branch, type Exploration } from './explorer.js';
import { scenarioOf } from './scenario.js';

/** A part of an exploration, as a child process gets it. */
export interface BranchTask {
  readonly scenario: string;
  readonly bounds: Bounds;
  /** Everything where it is undefined. */
  readonly branch?: Branch | undefined;
  readonly stopAtFirst: boolean;
  /** The name of a mistake of the simulation to plant. */
  readonly planted?: string | undefined;
}

export async function exploreBranch(task: BranchTask): Promise<Exploration> {
  const { scenario, bounds, planted, ...options } = task;
  return explore(scenarioOf(scenario), bounds, { ...options, pieces: piecesWith(planted) });
}

/** @param planted - the name of a mistake */
export function piecesWith(planted: string | undefined): Pieces {
  return { ...soundPieces, ...mistakes.find(({ name }) => name === planted)?.pieces };
}

// In a child process of `runTasks`.
if (process.send !== undefined) serveTasks(exploreBranch);
