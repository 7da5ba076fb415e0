import type { CliContext } from '../../context/cli-context.js';
import { formatTable } from '../../output/format-table.js';
import type { PolicySummary } from './policy-summary.js';

/** The summary as text: each rule, and what the gateway paid. */
export function formatPolicy(
  { ok, rules, book, stolen, durationMs }: PolicySummary,
  colours: CliContext['colours'],
): string {
  const seconds = Math.round(durationMs / 1_000);
  const verdict = ok
    ? colours.green(`The policy held (${seconds} s).`)
    : colours.red(`The policy did not hold (${seconds} s):`);
  const rows = rules.map(({ rule, what, held, found }) => [
    ...['', held ? colours.green('✓') : colours.red('✗'), rule],
    ...[what, held ? found : colours.red(found)],
  ]);
  const payments = book.map(({ amount, addressTo }) => ['', amount, 'to', addressTo]);
  return `
${verdict}
${formatTable(rows)}
With the shop's key, and without the policy, the thief would have had ${stolen.ordered}. He got ${stolen.paid}.

The gateway's book:
${formatTable(payments, [1])}
Write your own: docs/control.md, examples/policies. Check it: payouts policy check FILE.
`;
}
