import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Runs work outside of whatever called it. What serves many callers must not stand in the trace, or keep alive the storage, of
 * the one whose call happens to begin it.
 */
export const runOutside = AsyncLocalStorage.snapshot();
