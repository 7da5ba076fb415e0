import { afterEach } from '@jest/globals';
import { startSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/index.js';
import type { Merchant } from './independent-client.js';
import { createManualClock, type ManualClock } from './manual-clock.js';

export const SECRET_KEY = 'a-secret-that-must-not-leak';

export interface RunningSandbox {
  readonly sandbox: Sandbox;
  readonly clock: ManualClock;
  readonly merchant: Merchant;
}

const running: Sandbox[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((sandbox) => sandbox.close()));
});

/** A sandbox with account 1001 on a clock that the test moves; it ends with the test. */
export async function runSandbox(options: Partial<SandboxOptions> = {}): Promise<RunningSandbox> {
  const clock = createManualClock();
  const accounts = [{ platformId: 1001, secretKey: SECRET_KEY }];
  const sandbox = await startSandbox({ accounts, clock, ...options });
  running.push(sandbox);
  return { sandbox, clock, merchant: { url: sandbox.url, platformId: 1001, secretKey: SECRET_KEY } };
}
