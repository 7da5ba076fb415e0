import { expect, it } from '@jest/globals';
import { SCRIPT_NAMES } from '../../../src/ledger/ledger-scripts.js';
import { account, useAccount } from '../support/use-account.js';
import { findContradictions } from './find-contradictions.js';
import { instrumentScripts, scriptScenarios } from './script-scenarios.js';

useAccount();

it('every ledger script has a scenario here', () => {
  expect([...new Set(scriptScenarios.map(({ script }) => script))].sort()).toEqual([...SCRIPT_NAMES].sort());
});

// While a cluster moves a slot, Redis refuses a script beforehand only where it knows all its keys.
it.each(scriptScenarios)('a script touches only keys that it was given ($name)', async (scenario) => {
  instrumentScripts(account.redis);
  await scenario.run(account, await scenario.prepare(account));
  expect(await findContradictions(account)).toEqual([]);
});
