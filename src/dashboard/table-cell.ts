import { html, type Html } from './html.js';

/**
 * A cell of a table that becomes cards on a narrow screen, where the header is gone and each value stands beside its label.
 * @param content - an empty cell shows a dash, and is left out of a card
 */
export function tableCell(label: string, className: string, content: Html | string | number | undefined): Html {
  return html`<td class="${className}${content === undefined ? ' empty' : ''}">
    <span class="label">${label}</span>
    <span class="value">${content ?? html`<span class="quiet" aria-hidden="true">–</span>`}</span>
  </td>`;
}
