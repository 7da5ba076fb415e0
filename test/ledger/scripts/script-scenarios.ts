import { accountScenarios } from './account-scenarios.js';
import type { ScriptScenario } from './scenario-stage.js';
import { sendScenarios } from './send-scenarios.js';

/** At least one for every script. */
export const scriptScenarios: readonly ScriptScenario[] = [...sendScenarios, ...accountScenarios];
