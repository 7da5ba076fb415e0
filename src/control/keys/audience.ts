import type { Clock } from '../../clock.js';
import { audienceField, baseUrlField } from '../../fields.js';
import { InvalidConfigError } from '../../errors.js';

/** For which environment signatures count here: those of a staging environment say nothing in production, with the same keys and account. */
export interface Audience {
  /** What everything signed names in its line `audience`. */
  readonly audience: string;
  /** Whether a signature that names none counts, as versions before the line made them. */
  readonly acceptsUnbound: () => boolean;
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
    throw invalid(
      "is required, or GATEWAY_BASE_URL: which environment is signed for. `payouts doctor` on the worker's host shows it",
    );
  return checkAudience(`${url.data}#${platformId}`, 'is required, because GATEWAY_BASE_URL is too long for a default');
}

function checkAudience(text: string, otherwise: string): string {
  const parsed = audienceField.safeParse(text);
  if (parsed.success) return parsed.data;
  throw invalid(`${otherwise}: it ${parsed.error.issues[0]?.message ?? ''} (got ${JSON.stringify(text)})`);
}

function invalid(message: string): InvalidConfigError {
  return new InvalidConfigError([{ field: 'PAYOUT_AUDIENCE', message }]);
}

/** @param unboundUntil - ISO 8601: until then signatures that name no audience count; undefined for never */
export function openAudience(
  audience: string,
  unboundUntil: string | undefined,
  clock: Pick<Clock, 'wallNow'>,
): Audience {
  const until = unboundUntil === undefined ? -Infinity : Date.parse(unboundUntil);
  return { audience, acceptsUnbound: () => clock.wallNow() < until };
}

/** Why a signature does not count here, as one word and as a sentence. */
export interface AudienceFault {
  readonly fault: 'wrong_audience' | 'no_audience';
  readonly message: string;
}

/**
 * Whether a signature is meant for here.
 * @param signed - the audience that the signature is said to name; undefined where it names none
 */
export function judgeAudience(
  signed: string | undefined,
  { audience, acceptsUnbound }: Audience,
): AudienceFault | undefined {
  if (signed === audience) return undefined;
  if (signed === undefined) {
    if (acceptsUnbound()) return undefined;
    const message =
      'it names no audience, as signatures of earlier versions: sign it again, or set PAYOUT_ACCEPT_UNBOUND_UNTIL to the time until which such signatures count';
    return { fault: 'no_audience', message };
  }
  // Anybody may have written it: what is no audience is not shown.
  const shown = audienceField.safeParse(signed).success ? `"${signed}"` : 'another audience';
  const message = `it is signed for ${shown}, and this is "${audience}": sign it with the PAYOUT_AUDIENCE that \`payouts doctor\` shows`;
  return { fault: 'wrong_audience', message };
}
