import { STATE_TONE, type PayoutState, type Tone } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';

const COLOUR = {
  active: 'cyan',
  good: 'green',
  warning: 'yellow',
  bad: 'red',
  muted: 'dim',
} as const satisfies Readonly<Record<Tone, keyof CliContext['colours']>>;

/** A state in its colour: green is well, red has failed, yellow needs an operator. */
export function colourState(state: PayoutState, colours: CliContext['colours'], text: string = state): string {
  return colours[COLOUR[STATE_TONE[state]]](text);
}
