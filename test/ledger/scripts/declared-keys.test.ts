import { describe, expect, it } from '@jest/globals';
import { SCRIPT_NAMES } from '../../../src/ledger/ledger-connection.js';
import { openTestAccount } from '../support/test-account.js';
import { findContradictions } from './find-contradictions.js';
import { instrumentScripts } from './instrumented-scripts.js';
import { stageOf } from './scenario-stage.js';
import { scriptScenarios } from './script-scenarios.js';

/** While a cluster moves a slot, Redis refuses a script beforehand only where it knows all its keys. */
describe('every ledger script', () => {
  it('has a scenario here', () => {
    expect([...new Set(scriptScenarios.map(({ script }) => script))].sort()).toEqual([...SCRIPT_NAMES].sort());
  });

  it.each(scriptScenarios)('touches only keys that it was given ($script: $name)', async ({ prepare }) => {
    const account = openTestAccount();
    instrumentScripts(account.redis);
    try {
      const { run } = await prepare(stageOf(account));
      await run(stageOf(account));
      expect(await findContradictions(account)).toEqual([]);
    } finally {
      await account.close();
    }
  });
});
