import { z } from 'zod';
import type { PartialSettings, Setting, Settings } from './setting.js';
import { ACCOUNT_SETTINGS } from './settings.js';

/** The settings of an account as a program gives them: types, defaults and rules, all from the table in `settings.ts`. */

/**
 * From asking to begin a send until its first byte, in ms. A process that was stopped for longer must not write. Redis's
 * disk and replicas have as long to keep a write.
 */
export const GUARD_MS = 1_000;

type Table = typeof ACCOUNT_SETTINGS;

/** How an account is paced and followed. Times in ms. */
export type AccountSettings = Settings<Table>;

/** Settings that may be left out, also by saying `undefined`. */
export type PartialAccountSettings = PartialSettings<Table>;

const ROWS: readonly (readonly [name: string, row: Setting])[] = Object.entries(ACCOUNT_SETTINGS);

/** The settings of an account without any of its own. */
export const DEFAULT_ACCOUNT_SETTINGS = Object.fromEntries(
  ROWS.flatMap(([name, row]) => ('default' in row ? [[name, row.default]] : [])),
) as unknown as AccountSettings;

type Rules = { readonly [Name in keyof Table]: Table[Name]['rule'] };

/** Checks each setting by itself; `checkSettings` also finds those that contradict each other. */
export const partialAccountSettingsSchema = z
  .object(Object.fromEntries(ROWS.map(([name, { rule }]) => [name, rule])) as unknown as Rules)
  .partial();

/** Fills in the defaults. */
export function completeSettings(settings: PartialAccountSettings): AccountSettings {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return { ...DEFAULT_ACCOUNT_SETTINGS, ...Object.fromEntries(given) };
}
