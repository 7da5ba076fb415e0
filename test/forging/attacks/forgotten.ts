import type { Held } from '../support/outcome.js';

/** What retention has removed from the journal. */
export const FORGOTTEN = {
  name: 'a paid payout whose journal file retention has removed, with the clock set back to when its signature counted',
  expect: { held: 'forgotten', isTampering: false },
} as const satisfies { readonly name: string; readonly expect: Held };
