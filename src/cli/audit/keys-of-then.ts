import type { BoundKeyring, KeyFinder } from '../../control/keys/keyring.js';

/**
 * A keyring for what was signed before: a key that was revoked since signed well until then. Which keys of a journal are
 * revoked now is told apart, because a stolen key signs as well as the stolen one's owner. What names no environment counted
 * for the worker that sent it, of an earlier version.
 */
export function keysOfThen(keyring: BoundKeyring): KeyFinder {
  return {
    audience: keyring.audience,
    acceptsUnbound: () => true,
    find: (name) => {
      const key = keyring.find(name);
      return key && { ...key, revoked: false };
    },
  };
}
