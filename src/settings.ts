import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS } from './settings/account.js';
import { CONTROL_SETTINGS, SECRET_SETTINGS } from './settings/control.js';
import { DASHBOARD_SETTINGS } from './settings/dashboard.js';
import { NOTIFY_SETTINGS } from './settings/notify.js';
import { WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from './settings/worker.js';

/**
 * Every setting, one row each, in its reader's table (`settings/`): the key is its name in code and in the accounts
 * file. Each row has its variable, rule and default. The library's option types, the reading of environment and
 * accounts file, `docs/configuration.md` and `.env.example` derive from these rows. A row's comment is its line in the
 * docs. After a change: `npm run docs`.
 */

export {
  ACCOUNT_IDENTITY,
  ACCOUNT_SETTINGS,
  CONTROL_SETTINGS,
  DASHBOARD_SETTINGS,
  NOTIFY_SETTINGS,
  SECRET_SETTINGS,
  WORKER_COMMAND_SETTINGS,
  WORKER_SETTINGS,
};

/** Only the `payouts` command reads these; they are no options of programs. */
export const COMMAND_SETTINGS = {
  ...WORKER_COMMAND_SETTINGS,
  ...SECRET_SETTINGS,
  ...CONTROL_SETTINGS,
  ...DASHBOARD_SETTINGS,
  ...NOTIFY_SETTINGS,
} as const;

export const SETTINGS = { ...ACCOUNT_IDENTITY, ...ACCOUNT_SETTINGS, ...WORKER_SETTINGS, ...COMMAND_SETTINGS } as const;
