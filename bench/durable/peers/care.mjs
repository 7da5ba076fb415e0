// What a careful author adds with any engine, equal for all: the write has a deadline of its own, and after an outcome
// that is not known the account rests until no request can be on its way.

export const INTERVAL_MS = 1_000;
/** A request may still be on its way for so long: as this project's `IN_FLIGHT_MAX_MS`. */
const UNKNOWN_REST_MS = 30_000;
/** From the engine's call of the program to the first byte. */
const WRITE_WITHIN_MS = 5_000;

/** @param signal - the engine's, that the call is no longer this program's */
export function startDeadline(signal) {
  const startedAt = performance.now();
  return () => signal?.aborted !== true && performance.now() - startedAt < WRITE_WITHIN_MS;
}

/** How long nothing is sent after an outcome. @param failure - undefined if it was accepted; unknown unless it says otherwise */
export function restAfter(failure) {
  return failure === undefined || failure.isKnown === true ? INTERVAL_MS : UNKNOWN_REST_MS;
}

/** Another run had begun the payment: a process that ended, or a call that the engine took away. */
export function notKnown() {
  return new Error('another run had begun it: whether it is paid is not known');
}
