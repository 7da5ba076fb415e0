import { html, type Html } from './html.js';

const ICON = html`<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">
  <path
    d="M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8z"
    fill="none"
    stroke="currentColor"
    stroke-width="1.4"
    stroke-linejoin="round"
  />
</svg>`;

/**
 * Copies a text. Shown only where the script runs; the text itself stands beside it.
 * @param what - names the text, such as `txhash of order:7`
 */
export function copyButton(text: string, what: string): Html {
  return html`<button type="button" class="copy" data-copy="${text}" aria-label="Copy ${what}" title="Copy ${what}">
    ${ICON}
  </button>`;
}
