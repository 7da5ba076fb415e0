import { describe, expect, it } from '@jest/globals';
import { readAccountStats } from '../../../src/ledger/reads/account-stats.js';
import { readPayouts } from '../../../src/ledger/reads/payout-queries.js';
import { openTestAccount, type TestAccount } from '../support/test-account.js';
import { findContradictions } from './find-contradictions.js';
import { instrumentScripts } from './instrumented-scripts.js';
import { stageOf, type ScriptScenario } from './scenario-stage.js';
import { scriptScenarios } from './script-scenarios.js';

/** More commands than any script runs in these scenarios. */
const MOST_COMMANDS = 100;

/** What can be seen of an account, without what differs from run to run. */
async function readOutcome({ connection, redis }: TestAccount): Promise<unknown> {
  const prefix = connection.keys.payout('');
  const payoutIds = (await redis.keys(`${prefix}*`)).map((key) => key.slice(prefix.length)).sort();
  const payouts = await readPayouts(connection, payoutIds);
  return { payouts, stats: { ...(await readAccountStats(connection)), platformId: 0 } };
}

async function withAccount(use: (account: TestAccount) => Promise<void>): Promise<void> {
  const account = openTestAccount();
  try {
    await use(account);
  } finally {
    await account.close();
  }
}

/** @returns false when the script ended before it came so far */
async function interrupt({ script, prepare }: ScriptScenario, after: number): Promise<boolean> {
  let isInterrupted = false;
  await withAccount(async (account) => {
    const call = await prepare(stageOf(account));
    instrumentScripts(account.redis, { name: script, after });
    try {
      await call.run(stageOf(account));
    } catch (error) {
      expect((error as Error).message).toContain('interrupted');
      isInterrupted = true;
    }
    if (!isInterrupted) return;
    instrumentScripts(account.redis);
    await (call.again ?? call.run)(stageOf(account));
    expect({ after, found: await findContradictions(account) }).toEqual({ after, found: [] });
    if (call.again !== undefined) return;
    const outcome = await readOutcome(account);
    await withAccount(async (sound) => {
      const soundCall = await prepare(stageOf(sound));
      await soundCall.run(stageOf(sound));
      expect({ after, outcome }).toEqual({ after, outcome: await readOutcome(sound) });
    });
  });
  return isInterrupted;
}

/**
 * A script that fails in its middle leaves behind what it has written. Whatever it was: once the caller has asked again,
 * everything agrees, and it is as if nothing had happened.
 */
describe('a script that ends with an error after any of its commands, and is called again', () => {
  it.each(scriptScenarios)(
    'leaves nothing undone or done twice ($script: $name)',
    async (scenario) => {
      let after = 1;
      while (await interrupt(scenario, after)) {
        after += 1;
        expect(after).toBeLessThan(MOST_COMMANDS);
      }
      expect(after).toBeGreaterThan(2);
    },
    120_000,
  );
});
