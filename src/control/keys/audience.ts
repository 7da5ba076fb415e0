import type { Clock } from '../../base/clock.js';
import { audienceField } from '../../base/fields.js';

/**
 * The environment whose signatures count. Those of staging do not count in production, even with the same keys and
 * account.
 */
export interface Audience {
  readonly audience: string;
  /** Whether signatures without an environment count, as earlier versions made them. */
  readonly acceptsUnbound: () => boolean;
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

interface AudienceFault {
  readonly fault: 'wrong_audience' | 'no_audience';
  readonly message: string;
}

export function checkAudience(
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
  // Untrusted text: an invalid audience is not shown.
  const shown = audienceField.safeParse(signed).success ? `"${signed}"` : 'another audience';
  const message = `it is signed for ${shown}, and this is "${audience}": sign it with the PAYOUT_AUDIENCE that \`payouts doctor\` shows`;
  return { fault: 'wrong_audience', message };
}
