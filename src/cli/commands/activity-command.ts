import type { Command } from 'commander';
import { formatCount, formatTime } from '../../format.js';
import { ACTIVITIES, readActivity, type Activity } from '../../ledger/activity.js';
import type { CliContext } from '../context/cli-context.js';
import { parseLimit } from '../context/parse-limit.js';
import { withAccount } from '../context/with-account.js';
import { formatTable } from '../output/format-table.js';

interface Flags {
  readonly limit: string;
  readonly all?: true;
  readonly json?: true;
}

const PAGE_SIZE = 500;

const HELP_AFTER = `
What operators did: pauses, resumes, cancellations, retries, releases, resolutions, approvals, adoptions, drops of the balance
that they accepted; and what paused the account by itself or objected to the ledger. The newest first, about the last
10,000. One command that changed many payouts is one line.

Examples:
  payouts activity
  payouts activity --all --json > activity.jsonl
`;

/** Defines `payouts activity`. */
export function defineActivityCommand(command: Command, context: CliContext): void {
  command
    .option('--limit <number>', 'maximum number of lines to print', '50')
    .option('--all', 'all of them')
    .option('--json', 'print each as one line of JSON')
    .addHelpText('after', HELP_AFTER)
    .action(async ({ limit, all, json }: Flags) => {
      let left = all ? Infinity : parseLimit(limit);
      await withAccount(context, async ({ ledger: { connection } }) => {
        let before: { readonly before?: string } | undefined = {};
        while (before !== undefined && left > 0) {
          const page = await readActivity(connection, { limit: Math.min(left, PAGE_SIZE), ...before });
          write(page.activities, json === true, context);
          left -= page.activities.length;
          before = page.next === undefined ? undefined : { before: page.next };
        }
      });
    });
}

function write(activities: readonly Activity[], json: boolean, { write: print, writeJson, colours }: CliContext): void {
  if (json) for (const activity of activities) writeJson(activity);
  else if (activities.length > 0) {
    const rows = activities.map((activity) => [
      colours.dim(formatTime(activity.at)),
      activity.by,
      describe(activity),
      activity.reason,
    ]);
    print(formatTable(rows));
  }
}

function describe({ what, payoutId, count }: Activity): string {
  const about = payoutId ?? (count === 0 ? '' : formatCount(count, 'payout'));
  return about === '' ? ACTIVITIES[what] : `${about} ${ACTIVITIES[what]}`;
}
