import type { Point, RunOptions } from './open-run.js';

/** What came of a run whose process was to end at a point. */
export interface Tried {
  /** False where the timing differed and the process never came to the point. */
  readonly isReached: boolean;
  /** Which promise was broken. */
  readonly broken: string | undefined;
}

/** A kind of process that is ended at each of its steps. */
export interface CrashedProgram {
  readonly name: string;
  /** The names of all steps that it takes when nothing ends it. */
  recordSteps(options: RunOptions): Promise<string[]>;
  tryPoint(options: RunOptions, point: Point): Promise<Tried>;
}

/**
 * Ends the program before and after each of its steps, and says what it found.
 * @param jobs - how many runs at the same time
 * @returns at how many points the promises were kept, and at how many one was broken
 */
export async function tryPoints(
  program: CrashedProgram,
  options: RunOptions,
  jobs: number,
): Promise<{ readonly passed: number; readonly failed: number }> {
  const steps = await program.recordSteps(options);
  const points = steps.flatMap((step): Point[] => [
    { step, side: 'before' },
    { step, side: 'after' },
  ]);
  say(`${program.name}: ${steps.length} steps recorded, ${points.length} crash points`);
  const waiting = [...points];
  let failed = 0;
  let unreached = 0;
  const work = async (): Promise<void> => {
    for (let point = waiting.shift(); point !== undefined; point = waiting.shift()) {
      const { isReached, broken } = await program.tryPoint(options, point);
      if (!isReached) unreached += 1;
      if (broken === undefined) continue;
      failed += 1;
      say(`FAILED ${program.name} ${point.side} ${point.step}: ${broken}`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  say(
    `${program.name}: ${points.length} points done, ${failed} failed, ${unreached} not reached (the timing differed)`,
  );
  return { passed: points.length - failed, failed };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
