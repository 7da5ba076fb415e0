import { afterEach } from '@jest/globals';
import { systemClock, type Clock } from '../../../src/base/clock.js';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.js';

/** A clock that moves only when a test advances it, so a limit can be met exactly. */
interface ManualClock extends Clock {
  advance(ms: number): void;
}

export function createManualClock(): ManualClock {
  let nowMs = 5_000;
  return { ...systemClock, now: () => nowMs, advance: (ms) => void (nowMs += ms) };
}

export const SECRET_KEY = 'a-secret-that-must-not-leak';

const running: Sandbox[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((sandbox) => sandbox.close()));
});

/** A sandbox with account 1001 on a clock that the test moves; it ends with the test. */
export async function runSandbox(options: Partial<SandboxOptions> = {}) {
  const clock = createManualClock();
  const accounts = [{ platformId: 1001, secretKey: SECRET_KEY }];
  const sandbox = await startSandbox({ accounts, clock, ...options });
  running.push(sandbox);
  return { sandbox, clock, merchant: { url: sandbox.url, platformId: 1001, secretKey: SECRET_KEY } };
}
