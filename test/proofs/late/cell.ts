import type { Rig } from './rig.js';

/** What one cell of a matrix came to. */
export interface CellResult {
  readonly name: string;
  /** The promises that it broke, and what it could not show. */
  readonly broken: readonly string[];
  readonly figures: string;
}

export interface Cell {
  readonly name: string;
  readonly run: (rig: Rig) => Promise<Omit<CellResult, 'name'>>;
}

/** So begins what a cell could not show. It is no promise broken, but shows nothing either. */
export const NOT_SHOWN = 'NOT SHOWN';

/** On a busy machine a worker may miss its moment, and rightly send nothing. What breaks a promise is never tried again. */
const TRIES = 3;

/** Processes start within it: a busy machine would otherwise start all at once. */
const STAGGER_MS = 700;

/** Cells mostly wait, so many run at a time. @returns their results by name, each as soon as it is there */
export function runCells(rig: Rig, cells: readonly Cell[], jobs: number): ReadonlyMap<string, Promise<CellResult>> {
  const free: (() => void)[] = [];
  let running = 0;
  let startsAt = 0;
  const take = async () => {
    if (running === jobs) await new Promise<void>((resolve) => free.push(resolve));
    else running += 1;
    const waitMs = Math.max(0, startsAt - performance.now());
    startsAt = performance.now() + waitMs + STAGGER_MS;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  };
  const give = () => {
    const next = free.shift();
    if (next === undefined) running -= 1;
    else next();
  };
  const runOne = async ({ name, run }: Cell): Promise<CellResult> => {
    await take();
    try {
      for (let tries = 1; ; tries += 1) {
        const result = await run(rig).catch((error: unknown) => ({
          broken: [`${NOT_SHOWN}: ${(error as Error).message}`],
          figures: '',
        }));
        const hasShown = result.broken.some((text) => !text.startsWith(NOT_SHOWN)) || result.broken.length === 0;
        if (hasShown || tries === TRIES) return { name, ...result };
      }
    } finally {
      give();
    }
  };
  return new Map(cells.map((cell) => [cell.name, runOne(cell)]));
}

export const seconds = (ms: number | undefined) => (ms === undefined ? '-' : `${(ms / 1_000).toFixed(1)} s`);
