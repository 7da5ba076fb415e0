import type { NextStep } from '../operator/next-steps.js';
import { commandLine } from './command-line.js';
import { html, type Html } from './html.js';

/** What an operator can do, with the commands to copy. */
export function nextStepsSection(steps: readonly NextStep[]): Html | undefined {
  if (steps.length === 0) return undefined;
  const hasCommand = steps.some(({ command }) => command !== undefined);
  return html`<section class="card steps">
    <h2>What you can do</h2>
    ${hasCommand ? html`<p class="quiet">This page is read-only. Run one of these commands; replace the words in capitals.</p>` : undefined}
    <dl>
      ${steps.map(
        ({ when, command }) =>
          html`<div>
            <dt>${when}</dt>
            ${command === undefined ? undefined : html`<dd>${commandLine(command)}</dd>`}
          </div>`,
      )}
    </dl>
  </section>`;
}
