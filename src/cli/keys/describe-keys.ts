import { DAY_MS } from '../../base/clock.js';
import type { Keyring, KeyringKey } from '../../control/keys/keyring.js';
import { formatCount } from '../../base/format.js';

const EXPIRES_SOON_MS = 14 * DAY_MS;

/** Whether a signature made now counts. */
type KeyStatus = 'valid' | 'expires soon' | 'expired' | 'not valid yet' | 'revoked';

export type KeyView = ReturnType<typeof toKeyViews>[number];

/** Times are ISO 8601, UTC; absent for no bound. @param now - wall clock, ms */
export function toKeyViews(keyring: Pick<Keyring, 'keys' | 'displayNameOf'>, now: number) {
  return keyring.keys.map((key) => {
    const { name, role, person, notBefore, notAfter } = key;
    const about = { name, role, person, displayName: keyring.displayNameOf(person) };
    return { ...about, notBefore: toIso(notBefore), notAfter: toIso(notAfter), status: statusOf(key, now) };
  });
}

function statusOf({ notBefore = -Infinity, notAfter = Infinity, revoked }: KeyringKey, now: number): KeyStatus {
  if (revoked) return 'revoked';
  if (now > notAfter) return 'expired';
  if (now < notBefore) return 'not valid yet';
  return notAfter - now <= EXPIRES_SOON_MS ? 'expires soon' : 'valid';
}

export function warnOfKeys(keys: readonly KeyView[], now: number): string {
  const lines = keys
    .filter(({ status }) => status === 'expires soon')
    .map(({ name, notAfter = '' }) => {
      const left = formatCount(Math.floor((Date.parse(notAfter) - now) / DAY_MS), 'day');
      return `Warning: the key "${name}" expires in ${left}, at ${notAfter}. Add a new key before (\`payouts keys generate\`).\n`;
    });
  return lines.join('');
}

function toIso(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString();
}
