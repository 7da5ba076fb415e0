import { describe, expect, it } from '@jest/globals';
import { SharedWait } from '../../src/ledger/confirm-write.js';

/** Waits that a test ends one after the other. */
function heldWaits(): { wait: SharedWait<string>; started: PromiseWithEnds[] } {
  const started: PromiseWithEnds[] = [];
  const wait = new SharedWait(
    async () =>
      new Promise<string>((resolve, reject) => {
        started.push({ resolve, reject });
      }),
  );
  return { wait, started };
}

interface PromiseWithEnds {
  readonly resolve: (reply: string) => void;
  readonly reject: (error: Error) => void;
}

/** Lets everything happen that waits for no wait. */
async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('waits that are asked for at the same time', () => {
  it('begin at once where none is under way', async () => {
    const { wait, started } = heldWaits();
    const first = wait.join();
    expect(started).toHaveLength(1);
    started[0]?.resolve('one');
    expect(await first).toBe('one');
    const second = wait.join();
    started[1]?.resolve('two');
    expect(await second).toBe('two');
  });

  it('share the one that begins after they were asked for, never one that was under way', async () => {
    const { wait, started } = heldWaits();
    const first = wait.join();
    const others = [wait.join(), wait.join(), wait.join()];
    await settle();
    expect(started).toHaveLength(1);
    started[0]?.resolve('one');
    expect(await first).toBe('one');
    await settle();
    expect(started).toHaveLength(2);
    const late = wait.join();
    started[1]?.resolve('two');
    expect(await Promise.all(others)).toEqual(['two', 'two', 'two']);
    await settle();
    started[2]?.resolve('three');
    expect(await late).toBe('three');
  });

  it('continue after one that failed', async () => {
    const { wait, started } = heldWaits();
    const first = wait.join();
    const second = wait.join();
    started[0]?.reject(new Error('no reply'));
    await expect(first).rejects.toThrow('no reply');
    await settle();
    started[1]?.resolve('two');
    expect(await second).toBe('two');
  });
});
