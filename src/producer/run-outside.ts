import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Runs work outside its caller's async context. Shared work must not belong to the trace of the call that happens to
 * begin it, or keep that call's storage alive.
 */
export const runOutside = AsyncLocalStorage.snapshot();
