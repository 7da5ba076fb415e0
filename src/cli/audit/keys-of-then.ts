import type { KeyFinder, Keyring } from '../../control/keyring.js';

/**
 * A keyring for what was signed before: a key that was revoked since signed well until then. Which keys of a journal are
 * revoked now is told apart, because a stolen key signs as well as the stolen one's owner.
 */
export function keysOfThen(keyring: Keyring): KeyFinder {
  return {
    find: (name) => {
      const key = keyring.find(name);
      return key && { ...key, revoked: false };
    },
  };
}
