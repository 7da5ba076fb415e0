import { ACCOUNT_SETTINGS, type GatewayApi } from './account-settings.js';
import { InvalidConfigError } from './errors.js';
import { audienceField, baseUrlField } from './fields.js';

/** What names the environment of an account. */
interface AudienceSource {
  readonly platformId: number;
  /** @defaultValue the gateway's URL, or the name of an own gateway, and the account */
  readonly audience?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly gateway?: { readonly id: string } | undefined;
}

/**
 * The environment of an account: what the setting says, else the gateway's URL in its one spelling and the account. An own
 * gateway has its name, which no URL can be.
 * @throws InvalidConfigError that names what to set
 */
export function audienceOf({ platformId, audience, baseUrl, gateway }: AudienceSource): string {
  if (audience !== undefined) return checkAudience(audience, 'is not valid');
  if (gateway !== undefined) return checkAudience(`own:${gateway.id}#${platformId}`, 'is required');
  const url = baseUrlField.safeParse(baseUrl);
  if (!url.success)
    throw audienceError(
      "is required, or GATEWAY_BASE_URL: which environment is signed for. `payouts doctor` on the worker's host shows it",
    );
  return checkAudience(`${url.data}#${platformId}`, 'is required, because GATEWAY_BASE_URL is too long for a default');
}

/**
 * What the ledger is bound to: the gateway, and the generation of its API or the name of an own one, because a payment
 * that one has sent cannot be followed by another. An audience has no space, so no other account has this text.
 * @throws InvalidConfigError that names what to set
 */
export function bindingOf(account: AudienceSource & { readonly api?: GatewayApi | undefined }): string {
  const { api = ACCOUNT_SETTINGS.api.default, gateway } = account;
  const audience = audienceOf(account);
  if (gateway !== undefined) return `${audience} (own:${gateway.id})`;
  return api === ACCOUNT_SETTINGS.api.default ? audience : `${audience} (${api})`;
}

function checkAudience(text: string, otherwise: string): string {
  const parsed = audienceField.safeParse(text);
  if (parsed.success) return parsed.data;
  throw audienceError(`${otherwise}: it ${parsed.error.issues[0]?.message ?? ''} (got ${JSON.stringify(text)})`);
}

function audienceError(message: string): InvalidConfigError {
  return new InvalidConfigError([{ field: 'PAYOUT_AUDIENCE', message }]);
}
