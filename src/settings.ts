import { ACCOUNT_IDENTITY, ACCOUNT_SETTINGS } from './settings/account.js';
import { CONTROL_SETTINGS, SECRET_SETTINGS } from './settings/control.js';
import { DASHBOARD_SETTINGS } from './settings/dashboard.js';
import { NOTIFY_SETTINGS } from './settings/notify.js';
import { WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from './settings/worker.js';

/**
 * Every setting, one row each, in the table of who reads it (`settings/`): its name in code and in the accounts file (the
 * key), its variable, its rule, its default. The option types of the library, the reading of the environment and of the
 * accounts file, `docs/configuration.md` and `.env.example` derive from these rows; the comment of a row is its line in the
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

/** What programs do not pass as options: only the `payouts` command reads it. */
export const COMMAND_SETTINGS = {
  ...WORKER_COMMAND_SETTINGS,
  ...SECRET_SETTINGS,
  ...CONTROL_SETTINGS,
  ...DASHBOARD_SETTINGS,
  ...NOTIFY_SETTINGS,
} as const;

/** All rows. */
export const SETTINGS = { ...ACCOUNT_IDENTITY, ...ACCOUNT_SETTINGS, ...WORKER_SETTINGS, ...COMMAND_SETTINGS } as const;
