import { type Layout, SplitWorld } from './support/split-world.js';

/** What happens in a world of hosts, counted at the gateway. */
export interface Scene {
  readonly name: string;
  readonly layout: Layout;
  /** Whether the slow tests run it, too; the others need `npm run failover`. */
  readonly isShort: boolean;
  /**
   * @returns figures, if it has any
   * @throws Error if a promise is broken, or what it shows does not come
   */
  readonly run: (world: SplitWorld) => Promise<string | undefined>;
}

/** @param size - `short`: the slow tests run it; `long`: the command alone */
export function scene(name: string, size: 'short' | 'long', layout: Layout, run: Scene['run']): Scene {
  return { name, layout, isShort: size === 'short', run };
}

export interface SceneResult {
  readonly name: string;
  readonly seconds: number;
  readonly figures: string;
  readonly error: string | undefined;
}

async function runScene({ name, layout, run }: Scene): Promise<SceneResult> {
  const startedAt = performance.now();
  const end = (figures: string, error?: string): SceneResult => ({
    ...{ name, figures, error },
    seconds: Math.round((performance.now() - startedAt) / 1_000),
  });
  let world: SplitWorld | undefined;
  try {
    world = await SplitWorld.start(layout);
    const figures = (await run(world)) ?? '';
    const { smallestGapMs, arrivals } = world.stats;
    return end(
      [`${arrivals} sent, smallest gap ${smallestGapMs?.toFixed(0) ?? '-'} ms`, figures].filter(Boolean).join('; '),
    );
  } catch (error) {
    return end('', `${(error as Error).stack ?? String(error)}\n${world?.logs() ?? ''}`);
  } finally {
    await world?.close();
  }
}

/** Each as soon as there is room. */
export function runScenes(scenes: readonly Scene[], atATime: number): ReadonlyMap<string, Promise<SceneResult>> {
  const slots = Array.from({ length: atATime }, async () => Promise.resolve());
  return new Map(
    scenes.map((each, index) => {
      const slot = index % atATime;
      const result = (slots[slot] ?? Promise.resolve()).then(async () => runScene(each));
      slots[slot] = result.then(() => undefined);
      return [each.name, result];
    }),
  );
}
