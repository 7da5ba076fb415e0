import type { Command } from 'commander';
import { systemClock } from '../../base/clock.js';
import { RedisUnavailableError } from '../../base/errors.js';
import { formatCount, formatTimeUtc } from '../../base/format.js';
import { ACTIVITIES, type Activity, readActivity } from '../../ledger/reads/activity.js';
import { readActGroups } from '../../ledger/reads/act-groups.js';
import { readReadable } from '../../ledger/payout-queries.js';
import type { LedgerConnection } from '../../ledger/ledger-connection.js';
import { toPlainText } from '../../base/plain-text.js';
import {
  type EventPosition,
  findEventsEnd,
  type PayoutEvent,
  readEvents,
} from '../../producer/events/payout-events.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { help, parseLimit, refuse } from '../context/flags.js';
import { colourState, formatTable } from '../output/format-table.js';

interface Flags {
  readonly follow?: true;
  readonly since?: string;
  readonly json?: true;
}

const PAGE_SIZE = 500;
const FOLLOW_INTERVAL_MS = 500;

export function defineEventsCommand(command: Command, context: CliContext): void {
  command
    .option('-f, --follow', 'print new events until stopped')
    .option('--since <time|eventId>', 'from a time on (such as 2030-01-31T09:00:00Z), or after an event')
    .option('--json', 'print each event as one line of JSON')
    .addHelpText(
      'after',
      help(
        'Without --since: from the first event that is kept, or with --follow from now on. In the JSON, eventId says where to continue.',
        'payouts events --since 2030-01-31T09:00:00Z',
        'payouts events --follow',
        'payouts events --follow --json --since 1906102800000-0 | your-program',
      ),
    )
    .action(async ({ follow, since, json }: Flags) => {
      const given = since === undefined ? undefined : parsePosition(since);
      const write = (event: PayoutEvent): void => {
        if (json) context.writeJson(event);
        else context.write(formatEvent(event, context.colours));
      };
      await withAccount(context, async ({ ledger: { connection } }) => {
        const stopped = follow ? context.stopSignal() : undefined;
        const start = given ?? (follow ? await findEventsEnd(connection) : { sinceMs: 0 });
        const end = await writeEvents(connection, start, write);
        if (stopped !== undefined) await followEvents(connection, end, { stopped, write, context });
      });
    });
}

function parsePosition(since: string): EventPosition {
  if (/^\d+-\d+$/.test(since)) return { afterEventId: since };
  const sinceMs = Date.parse(since);
  if (Number.isNaN(sinceMs)) {
    const message = `must be a time such as 2030-01-31T09:00:00Z, or an eventId (got "${since}")`;
    refuse('--since', message);
  }
  return { sinceMs };
}

/** @returns the position after the last event */
async function writeEvents(
  connection: LedgerConnection,
  start: EventPosition,
  write: (event: PayoutEvent) => void,
): Promise<EventPosition> {
  let position = start;
  for (;;) {
    const events = await readEvents(connection, position, PAGE_SIZE);
    events.forEach(write);
    const last = events.at(-1);
    if (last !== undefined) position = { afterEventId: last.eventId };
    if (events.length < PAGE_SIZE) return position;
  }
}

interface Following {
  readonly stopped: AbortSignal;
  readonly write: (event: PayoutEvent) => void;
  readonly context: CliContext;
}

/** Waits while Redis is unavailable: the operator wants the events that follow. */
async function followEvents(
  connection: LedgerConnection,
  start: EventPosition,
  { stopped, write, context }: Following,
): Promise<void> {
  let position = start;
  const writeAndRemember = (event: PayoutEvent): void => {
    write(event);
    position = { afterEventId: event.eventId };
  };
  while (!stopped.aborted) {
    await systemClock.sleep(FOLLOW_INTERVAL_MS, stopped);
    try {
      await writeEvents(connection, position, writeAndRemember);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      context.logger.debug({ error: error.message }, 'waiting for Redis');
    }
  }
}

function formatEvent(
  { type, payoutId = 'account', from, to, decision, hash = '', at, by, reason }: PayoutEvent,
  colours: CliContext['colours'],
): string {
  const who = [by === undefined ? '' : `by ${by}`, reason ?? ''].filter(Boolean).join(': ');
  const happened = decision === undefined ? type : `${type}: ${decision}`;
  const change = to === undefined || type === 'tampering' ? colours.yellow(happened) : colourState(to, colours);
  const what = from === undefined ? change : `${from} → ${change}`;
  // A line break in a value could pass for another event.
  const parts = [colours.dim(formatTimeUtc(at)), payoutId, what, hash, who].filter(Boolean);
  return `${parts.join('  ').replaceAll('\n', toPlainText('\n'))}\n`;
}

interface ActivityFlags {
  readonly limit: string;
  readonly key?: string;
  readonly all?: true;
  readonly json?: true;
}

export function defineActivityCommand(command: Command, context: CliContext): void {
  command
    .option('--limit <number>', 'maximum number of lines to print', '50')
    .option('--all', 'all of them')
    .option(
      '--key <name>',
      'only what was signed with this key, or done by this person, with the present state of each payout',
    )
    .option('--json', 'print each as one line of JSON')
    .addHelpText(
      'after',
      help(
        `The newest first, about the last 10,000; also what paused the account by itself or objected to the ledger. What one command
did with many payouts is one line; with --json and --key, each signed payout is one.`,
        'payouts activity',
        'payouts activity --all --json > activity.jsonl',
        'payouts activity --key ann-laptop --all',
      ),
    )
    .action(async ({ limit, all, json, key }: ActivityFlags) => {
      let left = all ? Infinity : parseLimit(limit);
      await withAccount(context, async ({ ledger: { connection } }) => {
        let before: string | undefined;
        do {
          const limited = key === undefined ? Math.min(left, PAGE_SIZE) : PAGE_SIZE;
          // A program, and who asks what a stolen key did, need each payout.
          const isGrouped = key === undefined && json !== true;
          const page = isGrouped
            ? await readGrouped(connection, limited, before)
            : await readActivity(connection, limited, before);
          const chosen = key === undefined ? page.activities : await chooseByKey(connection, page.activities, key);
          const shown = chosen.slice(0, left);
          writeActivities(shown, json === true, context);
          left -= shown.length;
          before = page.next;
        } while (before !== undefined && left > 0);
      });
    });
}

async function readGrouped(
  connection: LedgerConnection,
  limit: number,
  before: string | undefined,
): ReturnType<typeof readActivity> {
  const { groups, next } = await readActGroups(connection, limit, before);
  return { activities: groups, next };
}

/** An act, with the state that its payout has now. */
type ShownActivity = Activity & { readonly stateNow?: string };

/** After a key was stolen: what was done with it, and what became of that. */
async function chooseByKey(
  connection: LedgerConnection,
  activities: readonly Activity[],
  key: string,
): Promise<readonly ShownActivity[]> {
  const own = activities.filter((act) => act.by === key || act.key === key);
  const ids = [...new Set(own.flatMap(({ payoutId }) => payoutId ?? []))];
  const payouts = ids.length === 0 ? [] : await readReadable(connection, ids, () => undefined);
  const states = new Map(payouts.map(({ payoutId, state }) => [payoutId, state]));
  return own.map((act) =>
    act.payoutId === undefined ? act : { ...act, stateNow: states.get(act.payoutId) ?? 'removed or not readable' },
  );
}

function writeActivities(
  activities: readonly ShownActivity[],
  json: boolean,
  { write: print, writeJson, colours }: CliContext,
): void {
  if (json) for (const activity of activities) writeJson(activity);
  else if (activities.length > 0) {
    const rows = activities.map((activity) => [
      colours.dim(formatTimeUtc(activity.at)),
      [activity.by, ...(activity.key === undefined ? [] : [`(key ${activity.key})`])].join(' '),
      describeActivity(activity),
      ...(activity.stateNow === undefined ? [] : [`now ${activity.stateNow}`]),
      activity.reason,
    ]);
    print(formatTable(rows));
  }
}

function describeActivity({ what, payoutId, count, source }: Activity): string {
  const about = payoutId ?? (count === 0 ? '' : formatCount(count, 'payout'));
  const chosen = source === undefined ? '' : ` (${source})`;
  return `${about === '' ? '' : `${about}${chosen} `}${ACTIVITIES[what]}`;
}
