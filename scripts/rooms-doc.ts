/** The list of folders in docs/architecture.md. */
import { replaceBetween } from './between-marks.js';
import { ROOMS } from './rooms.js';

const [BEGIN, END] = ['<!-- rooms, by `npm run docs` -->\n', '<!-- end of rooms -->'];

export function renderRooms(text: string): string {
  return replaceBetween(text, BEGIN, END, ROOMS.map(({ folder, is }) => `- \`src/${folder}/\`: ${is}`).join('\n'));
}
