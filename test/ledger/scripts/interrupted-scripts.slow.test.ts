import { expect, it } from '@jest/globals';
import { readAccountStats } from '../../../src/ledger/reads/account-stats.js';
import { readEach, readIndex } from '../../../src/ledger/payout-queries.js';
import { PAYOUT_STATES } from '../../../src/ledger/states.js';
import { openTestAccount, type TestAccount } from '../support/test-account.js';
import { findContradictions } from './find-contradictions.js';
import { instrumentScripts, scriptScenarios, type ScriptScenario } from './script-scenarios.js';

const MOST_COMMANDS = 100;

async function readOutcome({ connection, redis }: TestAccount): Promise<unknown> {
  const prefix = connection.keys.payout('');
  const payoutIds = (await redis.keys(`${prefix}*`)).map((key) => key.slice(prefix.length)).sort();
  // Until when a request may arrive is by the clock of Redis: it differs from run to run.
  const payouts = (await readEach(connection, payoutIds)).payouts.map((payout) => ({
    ...payout,
    inFlightUntil: undefined,
  }));
  const orders = PAYOUT_STATES.map(async (state) => {
    const entries = await readIndex(connection, connection.keys.stateIndex(state), { limit: 100 });
    return entries.map(({ payoutId }) => payoutId);
  });
  return {
    payouts,
    orders: await Promise.all(orders),
    stats: { ...(await readAccountStats(connection)), platformId: 0 },
  };
}

/** @returns false when the script ended before it came so far */
async function interrupt(scenario: ScriptScenario, after: number) {
  const [account, sound] = [openTestAccount(), openTestAccount()];
  try {
    const prepared = await scenario.prepare(account);
    instrumentScripts(account.redis, { name: scenario.script, after });
    const error = await scenario.run(account, prepared).then(
      () => undefined,
      (reason: unknown) => reason as Error,
    );
    if (error === undefined) return false;
    expect(error.message).toContain('interrupted');
    instrumentScripts(account.redis);
    await (scenario.again ?? scenario.run)(account, prepared);
    expect({ after, found: await findContradictions(account) }).toEqual({ after, found: [] });
    if (scenario.again !== undefined) return true;
    await scenario.run(sound, await scenario.prepare(sound));
    expect({ after, outcome: await readOutcome(account) }).toEqual({ after, outcome: await readOutcome(sound) });
    return true;
  } finally {
    for (const opened of [account, sound]) await opened.close();
  }
}

// A script that fails in its middle leaves behind what it has written. Whatever it was: once the caller has asked again,
// everything agrees, and it is as if nothing had happened.
it.each(scriptScenarios)(
  'a script that ends with an error after any of its commands leaves nothing undone or done twice ($name)',
  async (scenario) => {
    let after = 1;
    while (await interrupt(scenario, after)) {
      after += 1;
      expect(after).toBeLessThan(MOST_COMMANDS);
    }
    expect(after).toBeGreaterThan(1);
  },
  120_000,
);
