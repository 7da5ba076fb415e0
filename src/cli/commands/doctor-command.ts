import { type Command, Option } from 'commander';
import { findMisspelt, readConfig } from '../../base/config.js';
import { silentLogger } from '../../base/logger.js';
import { describeRedis } from '../../base/describe-redis.js';
import { closeRedis, connectRedis } from '../../base/redis.js';
import { toPlainText } from '../../base/plain-text.js';
import type { CliContext } from '../context/cli-context.js';
import { type AccountSummary, readAccountSummary } from '../../operator/account-summary.js';
import { openAccount } from '../../queues/open-account.js';
import { type CheckResult, warning } from '../doctor/check-result.js';
import { runChecks } from '../doctor/run-checks.js';
import { reportChecks, runChecksApart } from '../doctor/run-checks-apart.js';
import { CommandFailedError } from '../context/exit-code.js';
import { formatCount } from '../../base/format.js';
import { readWorkerAccounts } from '../context/accounts.js';
import { help } from '../context/flags.js';
import { hasKeyring } from '../context/keys.js';
import { SEND_CHECKS } from '../../worker/sender/send-checks.js';
import { formatHeadline } from './status-command.js';

const SIGNS = { ok: ['green', '✓'], warning: ['yellow', '!'], problem: ['red', '✗'] } as const;
const NAME_WIDTH = 25;

/** In the order in which a worker asks. */
const BEFORE_A_SEND = `\nBefore each send, the worker checks:\n${SEND_CHECKS.map(({ name }, index) => `${index + 1}. ${name}\n`).join('')}`;

/** Only runs the checks, and reports to the process that started it. */
const CHECKS_FLAG = '--checks';

export function defineDoctorCommand(command: Command, context: CliContext): void {
  command
    .option('--json', 'print one JSON object')
    .addOption(new Option(CHECKS_FLAG).hideHelp())
    .addHelpText(
      'after',
      help(
        `The first line is the headline of the dashboard. Changes nothing, and can run beside a worker at any time, with the environment of \`payouts worker\`. If HEALTH_PORT is set, it also
asks the worker that serves there. Also says what the worker itself checks before each send. Exit code 1: a line begins with ✗, so payouts cannot be sent or a safeguard is missing.`,
        'payouts doctor',
        `payouts doctor --json | jq '.checks[] | select(.status != "ok")'`,
      ),
    )
    .action(async ({ json, checks }: { readonly json?: true; readonly checks?: true }) => {
      const { environment } = context;
      if (checks) {
        const accounts = await readWorkerAccounts(environment);
        await reportChecks((begin) => runChecks(environment, accounts, begin));
      } else await runDoctor(context, json ?? false);
    });
}

async function runDoctor(context: CliContext, json: boolean): Promise<void> {
  const accounts = await readWorkerAccounts(context.environment);
  const headlines = await readSummaries(context, accounts);
  if (!json) context.write(`${headlines.map((one) => formatHeadline(one, context.colours)).join('\n')}\n\n`);
  const checks: CheckResult[] = [];
  const note = (check: CheckResult): void => {
    checks.push(check);
    if (!json) context.write(formatCheck(check, context.colours, accounts.length > 1));
  };
  for (const { variable, meant } of findMisspelt(context.environment)) {
    note({ name: 'environment', ...warning(`${variable} is not known and has no effect`, `Did you mean ${meant}?`) });
  }
  const { program } = context;
  const results = program ? runChecksApart([...program, CHECKS_FLAG]) : runChecks(context.environment, accounts);
  for await (const check of results) note(check);
  const problems = checks.filter(({ status }) => status === 'problem').length;
  const warnings = checks.filter(({ status }) => status === 'warning').length;
  if (json) {
    const shown = headlines.map(({ platformId, tone, headline, detail, command, runbook }) => ({
      ...{ platformId, tone, headline, detail, command, runbook },
    }));
    const sendChecks = SEND_CHECKS.map(({ name, reason }) => ({ name, reason }));
    context.writeJson({ ok: problems === 0, problems, warnings, headlines: shown, checks, sendChecks });
  } else context.write(`${BEFORE_A_SEND}\n${summarise(problems, warnings)}\n`);
  if (problems > 0) throw new CommandFailedError('The checks found problems');
}

async function readSummaries(
  { environment }: CliContext,
  accounts: readonly { readonly platformId: number }[],
): Promise<AccountSummary[]> {
  const isSigned = hasKeyring(environment);
  const { REDIS_URL, STUCK_AFTER_MS: stuckAfterMs } = readConfig(['REDIS_URL', 'STUCK_AFTER_MS'], environment);
  const connection = connectRedis(REDIS_URL, 'commands', silentLogger);
  try {
    const reading = accounts.map(async ({ platformId }) => {
      const account = openAccount({ platformId, connection, readOnly: true }, 'reply');
      // The checks look for the cause.
      const unknown = ({ message }: Error): AccountSummary => ({
        ...{ platformId, redis: describeRedis(connection), gateway: null },
        ...{ tone: 'warn', headline: 'Not known', detail: message, advice: [], ledger: undefined },
      });
      return readAccountSummary(account, { isSigned, stuckAfterMs })
        .catch(unknown)
        .finally(async () => account.close());
    });
    return await Promise.all(reading);
  } finally {
    await closeRedis(connection);
  }
}

function formatCheck(
  { name, platformId, status, detail, fix }: CheckResult,
  colours: CliContext['colours'],
  withAccount: boolean,
): string {
  const account = withAccount && platformId !== undefined ? `${platformId}: ` : '';
  const [colour, sign] = SIGNS[status];
  const line = `${colours[colour](sign)} ${name.padEnd(NAME_WIDTH)}${account}${toPlainText(detail)}\n`;
  return fix === undefined ? line : `${line}${' '.repeat(NAME_WIDTH + 2)}→ ${toPlainText(fix)}\n`;
}

function summarise(problems: number, warnings: number): string {
  const noted = warnings === 0 ? '' : formatCount(warnings, 'warning');
  if (problems > 0)
    return `${formatCount(problems, 'problem')}${noted === '' ? '' : `, ${noted}`}: fix what is marked ✗.`;
  return noted === '' ? 'No problems found.' : `No problems found; ${noted}.`;
}
