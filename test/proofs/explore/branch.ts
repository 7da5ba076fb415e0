import { serveTasks } from '../task-pool.js';
import { soundPieces } from '../simulation/pieces.js';
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
  const plant = mistakes.find(({ name }) => name === planted)?.pieces;
  return explore(scenarioOf(scenario), bounds, { ...options, ...(plant && { pieces: { ...soundPieces, ...plant } }) });
}

// In a child process of `runTasks`.
if (process.send !== undefined) serveTasks(exploreBranch);
