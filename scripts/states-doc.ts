import { markdownTable as table } from './markdown-table.js';
import {
  FINAL_STATES,
  PAYOUT_STATES,
  STATE_MEANING,
  STATES_WITH_JOB,
  TRANSITIONS,
  waitsFor,
} from '../src/ledger/states.js';

/** The text of docs/states.md, made from the tables in src/ledger/states.ts and transitions.ts, so that they cannot differ. */
export function renderStatesDoc(): string {
  return `<!-- Made by \`npm run docs\` from src/ledger/states.ts and transitions.ts: change the tables there. -->

# The states of a payout

Every change is one script in Redis that checks the state before, so a transition that is not in the table below cannot happen.
\`unknown\` is never left automatically, except by the attempt's own late response, which its sender or the journal still has: sending again could pay twice.
What an adoption brings back that Redis forgot altogether begins as \`unknown\`, \`in_progress\` or \`rejected\`, as the journal says.

${table(
  ['state', 'meaning', 'waits for', 'needs a job'],
  PAYOUT_STATES.map((state) => [
    `\`${state}\``,
    STATE_MEANING[state],
    waitsFor(state) ?? 'nobody',
    STATES_WITH_JOB.some((withJob) => withJob === state) ? 'yes' : 'no',
  ]),
)}

## Transitions

${table(
  ['from', 'to', 'when'],
  TRANSITIONS.map(({ from, to, when }) => [`\`${from}\``, `\`${to}\``, when]),
)}

## Diagram

Without the transitions that only follow a mistake: a forgotten send, a wrong statement, a status of another payment.

\`\`\`mermaid
stateDiagram-v2
${diagram().join('\n')}
\`\`\`
`;
}

function diagram(): string[] {
  const normal = TRANSITIONS.filter(({ isExceptional }) => !isExceptional);
  return [
    '    [*] --> queued: enqueue',
    ...normal.map(({ from, to, when }) => `    ${from} --> ${to}: ${when}`),
    ...FINAL_STATES.map((state) => `    ${state} --> [*]`),
  ];
}
