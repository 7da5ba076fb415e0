import { html, type Html } from './html.js';

/** A command to copy: one click selects all of it. */
export function commandLine(command: string): Html {
  const words = command.split(' ').map((word, index) => html`${index === 0 ? '' : ' '}<span>${word}</span>`);
  return html`<pre><code>${words}</code></pre>`;
}
