import { setTimeout as delay } from 'node:timers/promises';

/** Polls until the condition holds. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  { withinMs = 300_000, everyMs = 100 }: { readonly withinMs?: number; readonly everyMs?: number } = {},
): Promise<void> {
  const giveUpAt = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error(`Not within ${withinMs} ms: ${what}`);
    await delay(everyMs);
  }
}
