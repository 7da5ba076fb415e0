import type { Command } from 'commander';
import { resolve } from 'node:path';
import { systemClock, within } from '../../base/clock.js';
import { readConfig } from '../../base/config.js';
import { formatAmount, formatCount, formatDuration, formatSince } from '../../base/format.js';
import { toPlainText } from '../../base/plain-text.js';
import { describeEnd } from '../../operator/account-backlog.js';
import { type AccountSummary, readAccountSummary } from '../../operator/account-summary.js';
import { readJournal } from '../../journal/journal-reader.js';
import { type AccountAccess, openAccount } from '../../queues/open-account.js';
import { readAccountOptions } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { CommandFailedError } from '../context/exit-code.js';
import { help } from '../context/flags.js';
import { hasKeyring } from '../context/keys.js';
import { formatTable, formatText } from '../output/format-table.js';

export function defineStatusCommand(command: Command, context: CliContext): void {
  command
    .option('--json', 'print one JSON object')
    .addHelpText(
      'after',
      help(
        `The first line is the headline of the dashboard. It takes a second or two, and five without a sender, because only a heartbeat shows that one lives.
Exit code 1: nothing is sent, and an operator must act.`,
        'payouts status',
        'payouts status --json | jq -r .headline',
      ),
    )
    .action(async ({ json }: { readonly json?: true }) => {
      const status = await readStatus(context);
      if (json) context.writeJson(status);
      else context.write(formatStatus(status, context.colours));
      if (status.tone === 'bad') throw new CommandFailedError(status.headline);
    });
}

export async function readStatus(context: CliContext): Promise<AccountSummary> {
  const account = openAccount({ ...readAccountOptions(context), readOnly: true });
  try {
    const { STUCK_AFTER_MS: stuckAfterMs } = readConfig(['STUCK_AFTER_MS'], context.environment);
    const isSigned = hasKeyring(context.environment);
    const summary = await readAccountSummary(account, { isSigned, stuckAfterMs });
    const elsewhere = await findJournalElsewhere(summary, account, context.environment);
    if (elsewhere === undefined) return summary;
    return { ...summary, tone: 'bad', detail: [elsewhere, summary.detail].filter(Boolean).join(' ') };
  } finally {
    await account.close();
  }
}

/** A disk that hangs must not keep the command. */
const JOURNAL_WITHIN_MS = 2_000;

/** @returns what the journal of this host has, if this ledger has no send at all */
async function findJournalElsewhere(
  { ledger, redis }: AccountSummary,
  { ledger: { connection } }: AccountAccess,
  environment: CliContext['environment'],
): Promise<string | undefined> {
  const given = environment['SEND_JOURNAL_DIR'];
  if (!given || ledger?.lastSendAgoMs !== null || ledger.sender !== null) return undefined;
  const dir = resolve(given);
  const journal = await within(
    JOURNAL_WITHIN_MS,
    readJournal(dir, connection.platformId).catch(() => undefined),
  );
  const sends = journal?.ledger?.sends ?? 0;
  if (sends === 0) return undefined;
  return `The ledger in Redis ${redis} has no send of the account, but the journal in ${dir} has ${formatCount(sends, 'send')}: it is another Redis, or it lost its data. Check REDIS_URL; do not enqueue anything again.`;
}

/** How `payouts status` and `payouts stats` begin. */
export function formatStatus(
  status: AccountSummary,
  colours: CliContext['colours'],
  more: readonly string[][] = [],
): string {
  const { detail, advice, command, runbook, ledger, redis, gateway } = status;
  const where = [
    ['', 'Redis', redis],
    ['', 'gateway', gateway ?? 'none yet: the first send binds the ledger to one'],
  ];
  const commands = [...advice.map((one) => one.command), ...(command === undefined ? [] : [command])];
  const sentences = [...advice.map(({ problem, first }) => `${problem.replace(/\.?$/, '.')} ${first}`)];
  if (advice.length === 0 && detail !== undefined) sentences.push(detail);
  return [
    `${formatHeadline(status, colours)}\n`,
    ...sentences.map(formatText),
    ...commands.map((line) => `  ${toPlainText(line)}\n`),
    runbook === undefined ? '' : `Runbook: ${runbook}\n`,
    ledger === undefined ? '' : `\n${formatTable([...factRows(ledger, colours), ...more, ...where])}`,
  ].join('');
}

/** The first line of `payouts status` and `payouts doctor`. */
export function formatHeadline(
  { platformId, tone, headline }: Pick<AccountSummary, 'platformId' | 'tone' | 'headline'>,
  colours: CliContext['colours'],
): string {
  const colour = { good: colours.green, warn: colours.yellow, bad: colours.red }[tone];
  return `Account ${platformId}: ${colour(headline)}`;
}

function factRows(ledger: NonNullable<AccountSummary['ledger']>, colours: CliContext['colours']): string[][] {
  const { sender, isAlive, lastSendAgoMs, pausedBy, pausedAt, due, sending, held, backlog } = ledger;
  const life = isAlive ? 'alive' : colours.yellow('no heartbeat');
  const end = backlog.queued === 0 ? '' : `, ${describeEnd(backlog, systemClock.wallNow())}`;
  const later = backlog.queued > due ? `; ${formatAmount(backlog.queued - due)} scheduled for later` : '';
  return [
    ...(pausedAt === null
      ? []
      : [['', 'paused by', `${pausedBy ?? ''}, ${formatSince(pausedAt, systemClock.wallNow())}`]]),
    ['', 'sender', sender === null ? 'none: no process holds the lease' : `${sender}, ${life}`],
    ['', 'last send', lastSendAgoMs === null ? 'none yet' : `${formatDuration(lastSendAgoMs)} ago`],
    ['', 'waiting', `${formatAmount(due)} due now, ${formatAmount(sending)} being sent, ${formatAmount(held)} held`],
    ['', 'backlog', `${formatAmount(backlog.queued)} queued${end}${later}`],
  ];
}
