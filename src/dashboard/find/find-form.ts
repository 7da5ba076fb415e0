import { formatState } from '../../format.js';
import { PAYOUT_STATES } from '../../ledger/states.js';
import { html, type Html } from '../html.js';
import type { Site } from '../layout.js';
import type { ListField, ListQuery } from './list-query.js';

interface Input {
  readonly field: Exclude<ListField, 'state'>;
  readonly label: string;
  readonly type: 'text' | 'date';
  readonly hint: string;
}

const INPUTS: readonly Input[] = [
  { field: 'address', label: 'Address', type: 'text', hint: 'whole; its tag may be left out' },
  { field: 'amount', label: 'Amount', type: 'text', hint: 'exact, such as 12.5' },
  { field: 'reference', label: 'Reference', type: 'text', hint: 'a part of it' },
  { field: 'batch', label: 'Batch', type: 'text', hint: 'its whole name' },
  { field: 'since', label: 'Changed from', type: 'date', hint: 'day in UTC' },
  { field: 'until', label: 'Changed until', type: 'date', hint: 'that day included' },
];

/**
 * The form that says which payouts a list shows. It needs no script.
 * @param isSearch - whether the text of the search field led here: on a phone the form would hide what was found
 */
export function findForm(
  { base }: Site,
  { texts, problems }: Pick<ListQuery, 'texts' | 'problems'>,
  isSearch: boolean,
): Html {
  const isOpen = !isSearch && Object.keys(texts).some((field) => field !== 'state');
  return html`<details class="card filter" ${isOpen ? html`open` : undefined}>
    <summary>Filter <span class="quiet">by address, amount, reference, batch, day</span></summary>
    <form action="${base}/payouts">
      ${stateSelect(texts.state)}
      ${INPUTS.map((input) => inputField(input, texts[input.field] ?? '', problems[input.field]))}
      <div class="buttons">
        <button class="primary">Show payouts</button>
        <a href="${base}/payouts?state=">Clear</a>
      </div>
    </form>
  </details>`;
}

function stateSelect(shown: string | undefined): Html {
  const option = (state: string, text: string): Html =>
    html`<option value="${state}" ${state === shown ? html`selected` : undefined}>${text}</option>`;
  return html`<div class="field">
    <label for="find-state">State</label>
    <select id="find-state" name="state">
      ${option('', 'all')} ${PAYOUT_STATES.map((state) => option(state, formatState(state)))}
    </select>
  </div>`;
}

function inputField({ field, label, type, hint }: Input, value: string, problem: string | undefined): Html {
  const id = `find-${field}`;
  const invalid = problem === undefined ? undefined : html`aria-invalid="true"`;
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${field}"
      type="${type}"
      value="${value}"
      aria-describedby="${id}-hint"
      ${invalid}
      autocomplete="off"
      autocapitalize="none"
      spellcheck="false"
    />
    <small id="${id}-hint" class="${problem === undefined ? 'quiet' : 'problem'}">${problem ?? hint}</small>
  </div>`;
}
