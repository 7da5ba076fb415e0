import { copyButton } from './copy-button.js';
import { html, type Html } from './html.js';

/** A command to copy: one click selects all of it. */
export function commandLine(command: string): Html {
  const words = command.split(' ').map((word, index) => html`${index === 0 ? '' : ' '}<span>${word}</span>`);
  return html`<div class="command">
    <pre><code>${words}</code></pre>
    ${copyButton(command, `the command ${command}`)}
  </div>`;
}
