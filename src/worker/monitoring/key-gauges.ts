import { Gauge, type Registry } from 'prom-client';
import type { Keyring } from '../../control/keyring.js';

/**
 * Makes the gauge of when the keys of a keyring end.
 * @returns what brings it up to date; a key that is revoked, or has no end, is left out
 */
export function createKeyGauges(registry: Registry): (keyring: Pick<Keyring, 'keys'> | undefined) => void {
  const notAfter = new Gauge({
    name: 'payouts_key_not_after_timestamp_seconds',
    help: 'When a key of the keyring ends (seconds since 1970), unless it is revoked: what it signs from then on does not count.',
    labelNames: ['key', 'role'],
    registers: [registry],
  });
  return (keyring) => {
    notAfter.reset();
    for (const { name, role, revoked, notAfter: endsAt } of keyring?.keys ?? []) {
      if (!revoked && endsAt !== undefined) notAfter.set({ key: name, role }, endsAt / 1_000);
    }
  };
}
