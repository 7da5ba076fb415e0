import { z } from 'zod';
import { InvalidConfigError } from './errors.js';
import { audienceField, baseUrlField } from './fields.js';
import type { PartialSettings, Setting, Settings } from './setting.js';
import { ACCOUNT_SETTINGS } from './settings.js';

/**
 * Limit from asking to begin a send until its first byte, in ms. A process stopped for longer must not write. Redis's
 * disk and replicas have the same time to keep a write.
 */
export const GUARD_MS = 1_000;

type Table = typeof ACCOUNT_SETTINGS;

/** How an account is paced and polled. Times in ms. */
export type AccountSettings = Settings<Table>;

/** Settings that may be missing or `undefined`. */
export type PartialAccountSettings = PartialSettings<Table>;

const ROWS: readonly (readonly [name: string, row: Setting])[] = Object.entries(ACCOUNT_SETTINGS);

/** The default settings of an account. */
export const DEFAULT_ACCOUNT_SETTINGS = Object.fromEntries(
  ROWS.flatMap(([name, row]) => ('default' in row ? [[name, row.default]] : [])),
) as unknown as AccountSettings;

type Rules = { readonly [Name in keyof Table]: Table[Name]['rule'] };

/** Checks each setting alone; `checkSettings` also finds contradictions. */
export const partialAccountSettingsSchema = z
  .object(Object.fromEntries(ROWS.map(([name, { rule }]) => [name, rule])) as unknown as Rules)
  .partial();

export function completeSettings(settings: PartialAccountSettings): AccountSettings {
  const given = Object.entries(settings).filter(([, value]) => value !== undefined);
  return { ...DEFAULT_ACCOUNT_SETTINGS, ...Object.fromEntries(given) };
}

/** What names the environment of an account. */
export interface AudienceSource {
  readonly platformId: number;
  /** @defaultValue the gateway's URL and the account */
  readonly audience?: string | undefined;
  readonly baseUrl?: string | undefined;
}

/**
 * The environment of an account: what the setting says, else the gateway's URL in its one spelling and the account.
 * @throws InvalidConfigError that names what to set
 */
export function audienceOf({ platformId, audience, baseUrl }: AudienceSource): string {
  if (audience !== undefined) return checkAudience(audience, 'is not valid');
  const url = baseUrlField.safeParse(baseUrl);
  if (!url.success)
    throw audienceError(
      "is required, or GATEWAY_BASE_URL: which environment is signed for. `payouts doctor` on the worker's host shows it",
    );
  return checkAudience(`${url.data}#${platformId}`, 'is required, because GATEWAY_BASE_URL is too long for a default');
}

function checkAudience(text: string, otherwise: string): string {
  const parsed = audienceField.safeParse(text);
  if (parsed.success) return parsed.data;
  throw audienceError(`${otherwise}: it ${parsed.error.issues[0]?.message ?? ''} (got ${JSON.stringify(text)})`);
}

function audienceError(message: string): InvalidConfigError {
  return new InvalidConfigError([{ field: 'PAYOUT_AUDIENCE', message }]);
}
