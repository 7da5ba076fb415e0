/** The list of the checks before a send in docs/architecture.md. */
import { SEND_CHECKS } from '../src/worker/sender/send-checks.js';
import { replaceBetween } from './between-marks.js';

const [BEGIN, END] = ['<!-- send checks, by `npm run docs` -->\n', '<!-- end of send checks -->'];

export function renderSendChecks(text: string): string {
  const lines = SEND_CHECKS.map(
    ({ name, reason, again }, index) => `${index + 1}. **${name}${again === undefined ? '' : ' (again)'}:** ${reason}`,
  );
  return replaceBetween(text, BEGIN, END, lines.join('\n'));
}
