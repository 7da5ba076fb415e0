import type { Command } from 'commander';
import { readConfig, readSettings } from '../../base/config.js';
import { WORKER_COMMAND_SETTINGS, WORKER_SETTINGS } from '../../base/settings.js';
import { toPlainText } from '../../base/plain-text.js';
import type { CliContext } from '../context/cli-context.js';
import type { CheckResult } from '../doctor/check-result.js';
import { runChecks, type DoctorOptions } from '../doctor/run-checks.js';
import { CommandFailedError } from '../context/exit-code.js';
import { formatCount } from '../../base/format.js';
import { readWorkerKey } from '../context/signing.js';
import { readWorkerAccounts } from '../context/accounts.js';

const HELP_AFTER = `
Checks Redis, the gateway, the journal, the queues and the account with the environment of \`payouts worker\`. It changes
nothing and can run beside a worker at any time.

With PAYOUT_KEYS_FILE it also checks the keys, and whether the journal lets signed payouts be sent; without, it warns of that.
With PAYOUT_POLICY_FILE it checks the policy.
Where HEALTH_PORT is set, it also asks the worker that serves there.

Exit code 1 when a line begins with ✗: payouts cannot be sent, or a safeguard is missing.

Examples:
  payouts doctor
  payouts doctor --json | jq '.checks[] | select(.status != "ok")'
`;

const { healthHost, healthPort } = WORKER_COMMAND_SETTINGS;
const DOCTOR_SETTINGS = { ...WORKER_SETTINGS, healthHost, healthPort };

const SIGNS: Record<CheckResult['status'], string> = { ok: '✓', warning: '!', problem: '✗' };
const NAME_WIDTH = 25;

export function defineDoctorCommand(command: Command, context: CliContext): void {
  command
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP_AFTER)
    .action(async ({ json }: { readonly json?: true }) => {
      await runDoctor(context, json ?? false);
    });
}

async function runDoctor(context: CliContext, json: boolean): Promise<void> {
  const options = readOptions(context);
  const checks: CheckResult[] = [];
  for await (const check of runChecks(options)) {
    checks.push(check);
    if (!json) context.write(formatCheck(check, context.colours, options.accounts.length > 1));
  }
  const problems = checks.filter(({ status }) => status === 'problem').length;
  const warnings = checks.filter(({ status }) => status === 'warning').length;
  if (json) context.writeJson({ ok: problems === 0, problems, warnings, checks });
  else context.write(`\n${summarise(problems, warnings)}\n`);
  if (problems > 0) throw new CommandFailedError('The checks found problems');
}

function readOptions({ environment }: CliContext): DoctorOptions {
  const accounts = readWorkerAccounts(environment);
  const { healthHost: host, healthPort: port, ...settings } = readSettings(DOCTOR_SETTINGS, environment);
  // Without a port, perhaps no worker serves there. Port 0 does not say which one is used.
  const isKnown = Boolean(environment['HEALTH_PORT']) && port !== 0;
  const { PAYOUT_KEYS_FILE: file, PAYOUT_ACCEPT_UNBOUND_UNTIL: acceptUnboundUntil } = readConfig(
    ['PAYOUT_KEYS_FILE', 'PAYOUT_ACCEPT_UNBOUND_UNTIL'],
    environment,
  );
  const keys = { file, acceptUnboundUntil, readWorkerKey: () => readWorkerKey(environment) };
  return { ...settings, accounts, keys, worker: isKnown ? { host, port } : undefined };
}

function formatCheck(
  { name, platformId, status, detail, fix }: CheckResult,
  colours: CliContext['colours'],
  withAccount: boolean,
): string {
  const account = withAccount && platformId !== undefined ? `${platformId}: ` : '';
  const line = `${colourSign(status, colours)} ${name.padEnd(NAME_WIDTH)}${account}${toPlainText(detail)}\n`;
  return fix === undefined ? line : `${line}${' '.repeat(NAME_WIDTH + 2)}→ ${toPlainText(fix)}\n`;
}

function colourSign(status: CheckResult['status'], colours: CliContext['colours']): string {
  switch (status) {
    case 'ok':
      return colours.green(SIGNS.ok);
    case 'warning':
      return colours.yellow(SIGNS.warning);
    case 'problem':
      return colours.red(SIGNS.problem);
  }
}

function summarise(problems: number, warnings: number): string {
  const noted = warnings === 0 ? '' : formatCount(warnings, 'warning');
  if (problems > 0)
    return `${formatCount(problems, 'problem')}${noted === '' ? '' : `, ${noted}`}: fix what is marked ✗.`;
  return noted === '' ? 'No problems found.' : `No problems found; ${noted}.`;
}
