import { html, type Html } from './html.js';

/** A command to copy: one click marks all of it. */
export function commandLine(command: string): Html {
  const words = command.split(' ').map((word, index) => html`${index === 0 ? '' : ' '}<span>${word}</span>`);
  return html`<pre><code>${words}</code></pre>`;
}
