import { Gauge, type Registry } from 'prom-client';
import type { KeyringFacts } from '../account-control.js';

/**
 * Makes the gauges of a keyring: when its keys end, and whether it could be read again.
 * @returns what brings it up to date; a key that is revoked, or has no end, is left out
 */
export function createKeyGauges(registry: Registry): (keyring: KeyringFacts | undefined) => void {
  const notAfter = new Gauge({
    name: 'payouts_key_not_after_timestamp_seconds',
    help: 'When a key of the keyring ends (seconds since 1970), unless it is revoked: what it signs from then on does not count.',
    labelNames: ['key', 'role'],
    registers: [registry],
  });
  const reloadFailed = new Gauge({
    name: 'payouts_keys_reload_failed',
    help: '1 while the keyring is one that was read before, since its file could not be used when it was read last, else 0.',
    registers: [registry],
  });
  return (keyring) => {
    notAfter.reset();
    reloadFailed.set(keyring?.reloadTrouble === undefined ? 0 : 1);
    for (const { name, role, revoked, notAfter: endsAt } of keyring?.keys ?? []) {
      if (!revoked && endsAt !== undefined) notAfter.set({ key: name, role }, endsAt / 1_000);
    }
  };
}
