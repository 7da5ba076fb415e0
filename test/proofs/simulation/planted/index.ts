import { leaseMistakes } from './lease-mistakes.js';
import type { Mistake } from './mistake.js';
import { pacingMistakes } from './pacing-mistakes.js';
import { recordMistakes } from './record-mistakes.js';

export { policyMistakes } from './policy-mistakes.js';
export { signedMistakes } from './signed-mistakes.js';

/** Every one of these breaks a promise. A simulation that does not notice them proves nothing. */
export const mistakes: readonly Mistake[] = [...pacingMistakes, ...leaseMistakes, ...recordMistakes];
