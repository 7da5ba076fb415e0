import { audienceField } from '../../base/fields.js';

/**
 * The environment whose signatures count. Those of staging do not count in production, even with the same keys and
 * account.
 */
export interface Audience {
  readonly audience: string;
}

interface AudienceFault {
  readonly fault: 'wrong_audience';
  readonly message: string;
}

/** @param signed - as it was signed; '' if someone removed it */
export function checkAudience(signed: string, { audience }: Audience): AudienceFault | undefined {
  if (signed === audience) return undefined;
  // Untrusted text: an invalid audience is not shown.
  const shown = audienceField.safeParse(signed).success ? `"${signed}"` : 'another audience';
  const message = `it is signed for ${shown}, and this is "${audience}": sign it with the PAYOUT_AUDIENCE that \`payouts doctor\` shows`;
  return { fault: 'wrong_audience', message };
}
