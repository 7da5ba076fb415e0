import type { Request } from 'express';
import { formatCount } from '../../base/format.js';
import type { Payout } from '../../ledger/payout.js';
import { UNSENT_STATES } from '../../ledger/states.js';
import { formatCommand, type NextStep } from '../../operator/next-steps.js';
import { html, type Html } from './html.js';
import type { Site } from './layout.js';
import { stepList } from './pieces.js';

/** Which payouts of a page a reader selected, by the URL alone: a page changes nothing, it shows the command. */
export interface Picked {
  readonly ids: ReadonlySet<string>;
  readonly isAll: boolean;
}

/** @returns undefined if the URL selects nothing */
export function readPicked({ pick, all }: Request['query']): Picked | undefined {
  const ids = [pick].flat().filter((each) => typeof each === 'string');
  return ids.length === 0 && all === undefined ? undefined : { ids: new Set(ids), isAll: all !== undefined };
}

export function pickBox(payoutId: string, isPicked: boolean): Html {
  return html`<td class="pick">
    <input
      type="checkbox"
      name="pick"
      value="${payoutId}"
      aria-label="Select ${payoutId}"
      ${isPicked && html`checked`}
    />
  </td>`;
}

/**
 * A form around a table with check boxes, and above it the commands for what was selected.
 * @param path - of the list, below the account's pages
 * @param toTable - gets the ids that are selected
 */
export function selectable(
  site: Site,
  path: string,
  payouts: readonly Payout[],
  picked: Picked | undefined,
  toTable: (ids: ReadonlySet<string>) => Html,
): Html {
  const [action = '', search] = path.split('?');
  const chosen = payouts.filter(({ payoutId }) => picked?.isAll === true || picked?.ids.has(payoutId));
  const buttons = html`<p class="buttons">
    <button>Commands for the selected</button> <button name="all" value="1">Commands for all on this page</button>
  </p>`;
  return html`${picked && chosenSection(site, chosen, picked)}
    <form action="${site.base}${action}#selected">
      ${[...new URLSearchParams(search)].map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
      ${toTable(new Set(chosen.map(({ payoutId }) => payoutId)))} ${buttons}
    </form>`;
}

function chosenSection(site: Site, chosen: readonly Payout[], { ids }: Picked): Html {
  const gone = ids.size - chosen.filter(({ payoutId }) => ids.has(payoutId)).length;
  const steps = selectionSteps(chosen, site);
  return html`<section class="card steps" id="selected">
    <h2>For the ${formatCount(chosen.length, 'selected payout')}</h2>
    ${gone > 0 && html`<p class="trouble">${formatCount(gone, 'more selected payout')} left this page meanwhile, perhaps sent or changed.</p>`}
    <p class="quiet">
      This page changes nothing. Run one of these; replace the words in capitals. Payouts that changed meanwhile are
      refused, not changed.
    </p>
    ${stepList(steps)}
  </section>`;
}

/** What an operator can do with several payouts: one command for all of them that it fits. */
function selectionSteps(chosen: readonly Payout[], { platformId, isSigned = false }: Site): readonly NextStep[] {
  const idsOf = (isWanted: (payout: Payout) => boolean): readonly string[] =>
    chosen.filter(isWanted).map(({ payoutId }) => payoutId);
  const toStep = (when: string, name: string, ids: readonly string[], options: readonly string[]): NextStep[] => {
    if (ids.length === 0) return [];
    // Behind `--`, since a payoutId may begin with a dash.
    const args = ids.some((id) => id.startsWith('-')) ? [...options, '--', ...ids] : [...ids, ...options];
    return [{ when: `${when} (${ids.length})`, command: formatCommand({ name, args }, platformId) }];
  };
  const why = ['--reason', 'WHY'];
  const signed = ['--key', 'FILE', ...why];
  const isReleasable = ({ state, held }: Payout): boolean =>
    state === 'held' && held?.kind !== 'policy' && held?.reason !== 'sent_before';
  const alone = idsOf(({ state, held }) => state === 'unknown' || held?.reason === 'sent_before');
  const others = idsOf(({ state }) => state !== 'unknown' && !UNSENT_STATES.includes(state));
  return [
    ...toStep(
      'You agree to exactly these addresses and amounts: approve them',
      'approve',
      idsOf(({ state, held }) => state === 'held' && held?.needs !== undefined),
      ['--key', 'FILE'],
    ),
    ...toStep(
      'The cause is gone: release them; each is checked again before it is sent',
      'release',
      idsOf(isReleasable),
      why,
    ),
    ...toStep(
      'What the gateway complained about is fixed: send them again',
      'retry',
      idsOf(({ state }) => state === 'rejected'),
      isSigned ? signed : why,
    ),
    ...toStep(
      'They should not be paid: cancel them; they are never sent',
      'cancel',
      idsOf(({ state }) => UNSENT_STATES.includes(state)),
      why,
    ),
    ...(alone.length > 0 ? [{ when: `May have been paid, so decide each on its own page: ${alone.join(', ')}` }] : []),
    ...(others.length > 0
      ? [
          {
            when: `Nothing to do for ${formatCount(others.length, 'payout')}: sent, paid, failed, cancelled or written off`,
          },
        ]
      : []),
    ...(chosen.length === 0 ? [{ when: 'None of them is on this page: select payouts below.' }] : []),
  ];
}
