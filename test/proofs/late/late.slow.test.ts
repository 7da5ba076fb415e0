import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CellResult, runCells } from './cell.js';
import { SHORT_CELLS } from './cells.js';
import { openRig, type Rig } from './rig.js';

/** They mostly wait, for minutes of real time. */
const AT_A_TIME = 32;
const LONGEST_MS = 1_500_000;

let rig: Rig | undefined;
let results: ReadonlyMap<string, Promise<CellResult>> = new Map();

describe('with the kernels of real hosts, whatever comes late: never too fast, never twice', () => {
  beforeAll(async () => {
    rig = await openRig();
    results = runCells(rig, SHORT_CELLS, AT_A_TIME);
  });
  afterAll(async () => {
    await Promise.all(results.values());
    await rig?.close();
  }, LONGEST_MS);

  it.each(SHORT_CELLS.map(({ name }) => name))(
    '%s',
    async (name) => {
      const result = await results.get(name);
      expect(result).toEqual({ ...result, broken: [] });
    },
    LONGEST_MS,
  );
});
