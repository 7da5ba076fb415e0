import { markdownTable as table } from './markdown-table.js';
import { FINAL_STATES, PAYOUT_STATES, STATE_MEANING, TRANSITIONS, waitsFor } from '../src/ledger/states.js';

/** The text of docs/states.md, made from the tables in src/ledger/states.ts and transitions.ts, so that they cannot differ. */
export function renderStatesDoc(): string {
  return `<!-- Made by \`npm run docs\` from src/ledger/states.ts and transitions.ts: change the tables there. -->

# The states of a payout

Every change is one script in Redis that checks the state before, so no other transition can happen. Only the attempt's own late response leaves \`unknown\` automatically, because sending again could pay twice.
A payout that Redis forgot altogether comes back from an adoption as \`unknown\`, \`in_progress\` or \`rejected\`, as the journal says.

A payment has two names. \`gatewayId\` is what the gateway calls it: the payout is polled by it, resolved with it, and no two payouts share it. \`txhash\` is the transaction on the chain, when the gateway tells it, at the end at the latest; several payouts may share one. In API v1 both are one text.

${table(
  ['state', 'meaning', 'waits for'],
  PAYOUT_STATES.map((state) => [`\`${state}\``, STATE_MEANING[state], waitsFor(state) ?? 'nobody']),
)}

## Transitions

${table(['from', 'to', 'when'], transitions())}

## Diagram

Without the transitions that only follow a mistake: a forgotten send, a wrong statement, a status of another payment.

\`\`\`mermaid
stateDiagram-v2
${diagram().join('\n')}
\`\`\`
`;
}

/** One row for the states that are left for the same state and reason. */
function transitions(): string[][] {
  const rows = new Map<string, string[]>();
  for (const { from, to, when } of TRANSITIONS) {
    const key = `${to} ${when}`;
    rows.set(key, [...(rows.get(key) ?? []), `\`${from}\``]);
  }
  return [...rows].map(([key, from]) => {
    const [to = '', ...when] = key.split(' ');
    return [from.join(', '), `\`${to}\``, when.join(' ')];
  });
}

function diagram(): string[] {
  const normal = TRANSITIONS.filter(({ isExceptional }) => !isExceptional);
  return [
    '    [*] --> queued',
    ...normal.map(({ from, to }) => `    ${from} --> ${to}`),
    ...FINAL_STATES.map((state) => `    ${state} --> [*]`),
  ];
}
