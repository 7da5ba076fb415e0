import { shorten } from '../format.js';
import { copyButton } from './copy-button.js';
import { html, type Html } from './html.js';

const ARROW = html`<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">
  <path d="M6.5 3.5h-3v9h9v-3m-3-6h3v3m0-3-6 6" fill="none" stroke="currentColor" stroke-width="1.4" />
</svg>`;

interface TxhashOptions {
  readonly payoutId: string;
  readonly paymentId: number;
  readonly explorers: ReadonlyMap<number, string>;
  readonly short?: true;
}

/** A txhash with a button to copy it, and a link to the block explorer of its currency, where there is one. */
export function txhashView(txhash: string, { payoutId, paymentId, explorers, short }: TxhashOptions): Html {
  const template = explorers.get(paymentId);
  const href = template?.replace('{txhash}', () => encodeURIComponent(txhash));
  const link =
    href === undefined
      ? undefined
      : html`<a
          class="explorer"
          href="${href}"
          target="_blank"
          rel="noopener noreferrer"
          aria-label="Block explorer: ${txhash}"
          title="Block explorer"
          >${ARROW}</a
        >`;
  const shown = short ? html`<span title="${txhash}">${shorten(txhash)}</span>` : html`${txhash}`;
  return html`<bdi class="mono">${shown}</bdi>${copyButton(txhash, `txhash of ${payoutId}`)} ${link}`;
}
