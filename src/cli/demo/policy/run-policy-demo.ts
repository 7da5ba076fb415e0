import { systemClock } from '../../../clock.js';
import { ClosedError } from '../../../errors.js';
import { openGround, type DemoGround } from '../demo-ground.js';
import type { StoryOptions } from '../story-options.js';
import { playPolicy } from './play-policy.js';
import { openPolicyAccount } from './policy-account.js';
import { summarisePolicy, type PolicySummary } from './policy-summary.js';

const PLATFORM_ID = 1001;
const SANDBOX = { settleAfterMs: 300, latencyAfterMs: { min: 20, max: 80 } };

/**
 * Shows a policy at work, with approvals and a stolen signing key. Stops everything that it started on every way out.
 * @throws ClosedError when it was stopped before the summary
 * @throws RedisUnavailableError without `redis-server`
 */
export async function runPolicyDemo({ path, note, stop }: StoryOptions): Promise<PolicySummary> {
  const startedAt = systemClock.now();
  let ground: DemoGround | undefined;
  try {
    ground = await openGround([PLATFORM_ID], SANDBOX);
    const account = await openPolicyAccount(ground, { platformId: PLATFORM_ID, path });
    note(`Redis    ${ground.redis.url}`);
    note(`Gateway  ${ground.sandbox.url}, a sandbox that keeps the book`);
    const tell = (text: string): void => {
      note(`${((systemClock.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
    };
    return summarisePolicy(await playPolicy(account, { note: tell, stop }), systemClock.now() - startedAt);
  } catch (error) {
    // Ctrl-C reaches the children as well: later failures are its consequence.
    if (!stop.aborted) throw error;
    throw new ClosedError('The demo was interrupted; everything that it started has been stopped');
  } finally {
    await ground?.close();
  }
}
