import { afterAll, beforeAll, it } from '@jest/globals';

/** Also on a busy machine. */
const LONGEST_MS = 600_000;

/** A test for each case. So many at a time are worked on, because each mostly waits. */
export function itInLanes<Case extends { readonly name: string }>(
  atATime: number,
  cases: readonly Case[],
  work: (one: Case) => Promise<void>,
) {
  const results = new Map<Case, Promise<void>>();
  beforeAll(() => {
    const lanes: Promise<void>[] = [];
    cases.forEach((one, index) => {
      const before = lanes[index % atATime] ?? Promise.resolve();
      const result = before.then(async () => work(one));
      results.set(one, result);
      lanes[index % atATime] = result.catch(() => undefined);
    });
  });
  afterAll(async () => {
    await Promise.allSettled(results.values());
  });
  it.each(cases)('$name', async (one) => results.get(one), LONGEST_MS);
}
