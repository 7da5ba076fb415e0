import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runScenes, type SceneResult } from './scene.js';
import { SHORT_SCENES } from './scenes/index.js';

/** Each has its own hosts, and mostly waits. */
const AT_A_TIME = 3;
const LONGEST_MS = 1_500_000;

let results: ReadonlyMap<string, Promise<SceneResult>> = new Map();

describe('between hosts whose network is cut, with real servers, Sentinels and workers', () => {
  beforeAll(() => {
    results = runScenes(SHORT_SCENES, AT_A_TIME);
  });
  afterAll(async () => {
    await Promise.all(results.values());
  }, LONGEST_MS);

  it.each(SHORT_SCENES.map(({ name }) => name))(
    '%s',
    async (name) => {
      const result = await results.get(name);
      expect(result).toEqual({ ...result, error: undefined });
    },
    LONGEST_MS,
  );
});
