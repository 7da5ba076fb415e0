import { followSignals, systemClock } from '../../../clock.js';
import { ClosedError } from '../../../errors.js';
import { openGround, type DemoGround } from '../demo-ground.js';
import type { StoryOptions } from '../story-options.js';
import { openForgeAccount, type ForgeAccount } from './forge-account.js';
import { ORDERS } from './forge-orders.js';
import { summariseForge, type ForgeSummary } from './forge-summary.js';
import type { ForgeView } from './forge-view.js';
import { playAccount } from './play-account.js';

const WITHOUT_KEYS = 1001;
const WITH_KEYS = 1002;
const SANDBOX = { settleAfterMs: 300, latencyAfterMs: { min: 20, max: 80 } };

/**
 * Attacks two accounts in the same way, one without keys and one with them, and judges both by the book of the gateway. Stops
 * everything that it started on every way out.
 * @throws ClosedError when it was stopped before the summary
 * @throws RedisUnavailableError without `redis-server`
 */
export async function runForge({ path, note, stop }: StoryOptions): Promise<ForgeSummary> {
  const startedAt = systemClock.now();
  let ground: DemoGround | undefined;
  try {
    ground = await openGround([WITHOUT_KEYS, WITH_KEYS], SANDBOX);
    ground.sandbox.addFaults([{ kind: 'block', addresses: [ORDERS.blocked.addressTo] }]);
    const accounts = {
      withoutKeys: await openForgeAccount(ground, { platformId: WITHOUT_KEYS, hasKeys: false, path }),
      withKeys: await openForgeAccount(ground, { platformId: WITH_KEYS, hasKeys: true, path }),
    };
    introduce(ground, note);
    const views = await playBoth(accounts, { note, stop, startedAt });
    return summariseForge(views, systemClock.now() - startedAt);
  } catch (error) {
    // Ctrl-C reaches the children as well: later failures are its consequence.
    if (!stop.aborted) throw error;
    throw new ClosedError('The demo was interrupted; everything that it started has been stopped');
  } finally {
    await ground?.close();
  }
}

function introduce({ redis, sandbox }: DemoGround, note: StoryOptions['note']): void {
  note(`Redis     ${redis.url}: the attacker can write to it, and has nothing else`);
  note(`Gateway   ${sandbox.url}, a sandbox that keeps the book`);
  note(`Accounts  ${WITHOUT_KEYS} without keys; ${WITH_KEYS} with keys of the shop and of the worker, a keyring and a`);
  note('          journal that was adopted. A shop, a worker process and the same attacker for each');
}

async function playBoth(
  accounts: Readonly<Record<'withoutKeys' | 'withKeys', ForgeAccount>>,
  { note, stop, startedAt }: Pick<StoryOptions, 'note' | 'stop'> & { readonly startedAt: number },
): Promise<Record<'withoutKeys' | 'withKeys', ForgeView>> {
  const ended = new AbortController();
  const play = async (account: ForgeAccount): Promise<ForgeView> => {
    const tell = (text: string): void => {
      const seconds = ((systemClock.now() - startedAt) / 1_000).toFixed(1).padStart(6);
      note(`${seconds} s  ${account.hasKeys ? 'with keys   ' : 'without keys'}  ${text}`);
    };
    return playAccount(account, { note: tell, stop: followSignals(stop, ended.signal).signal });
  };
  const playing = [play(accounts.withoutKeys), play(accounts.withKeys)] as const;
  try {
    const [withoutKeys, withKeys] = await Promise.all(playing);
    return { withoutKeys, withKeys };
  } finally {
    // Where one failed, the other must not go on with what is being closed.
    ended.abort();
    await Promise.allSettled(playing);
  }
}
