import type { PayoutState } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';

/** A state in its colour: green is well, red has failed, yellow needs an operator. */
export function colourState(state: PayoutState, colours: CliContext['colours'], text: string = state): string {
  switch (state) {
    case 'completed':
      return colours.green(text);
    case 'failed':
      return colours.red(text);
    case 'rejected':
    case 'unknown':
      return colours.yellow(text);
    case 'cancelled':
      return colours.dim(text);
    case 'queued':
    case 'sending':
    case 'in_progress':
      return colours.cyan(text);
  }
}
