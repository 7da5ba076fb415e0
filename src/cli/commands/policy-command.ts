import type { Command } from 'commander';
import type { CliContext } from '../context/cli-context.js';
import { findKeyring } from '../context/keyring.js';
import { readPolicyDraft, requirePolicy } from '../context/policy.js';
import { readPayout } from '../context/read-payout.js';
import { withAccount } from '../context/with-account.js';
import { formatExplanation, toExplanationJson } from '../policy/describe-explanation.js';
import { formatPolicy, toPolicyJson } from '../policy/describe-policy.js';
import { formatUsage, toUsageJson } from '../policy/describe-usage.js';
import { NotFoundError } from '../../errors.js';
import { readPolicyReport } from '../../ledger/policy-report.js';
import { explainPayout } from '../../control/operator/explain-payout.js';

const HELP_AFTER = `
A policy is a YAML file with rules for what may leave an account (docs/control.md). It only holds payouts: it cancels none.

Examples:
  payouts policy check
  payouts policy explain invoice-77
`;

const CHECK_HELP_AFTER = `
Nobody but root and the user of this process may be able to write the file, the lists that it names, or their folders. Rules that
ask for approvals, or count per signer, need the keyring: PAYOUT_KEYS_FILE. A running worker reads the file again on SIGHUP.
Exit code 2: the file cannot be used; every problem is named.

Examples:
  payouts policy check
  payouts policy check ./policy.yaml --json | jq -r .hash
`;

const EXPLAIN_HELP_AFTER = `
Reads the payout from Redis, and asks every rule of PAYOUT_POLICY_FILE with what this host can know: the file, the keyring, the
approvals that the payout carries. What was spent, and rates that are not pinned, are known to the worker alone; the answer says
where that matters. Why a payout is held now is what the worker found.

Exit codes: 0 explained. 2 the policy cannot be used. 3 payout not found. 5 its record was altered, and makes no sense.

Examples:
  payouts policy explain invoice-77
  payouts policy explain invoice-77 --json | jq .decision
`;

const USAGE_HELP_AFTER = `
What the worker that sends counts in each window, at most ten addresses or signers of a rule, the fullest first; what it holds, and
how old the rates are. It tells every 10 s; for people, not for programs that decide: who can write to Redis can alter it.

Exit codes: 0 shown. 1 Redis is unavailable. 3 no worker with a policy has told anything yet.

Examples:
  payouts policy usage
  payouts policy usage --json | jq '.rules[] | {rule, used: .buckets[0].ratio}'
`;

interface Flags {
  readonly json?: true;
}

/** Defines `payouts policy`. */
export function definePolicyCommand(command: Command, context: CliContext): void {
  command.addHelpText('after', HELP_AFTER);
  command
    .command('check')
    .description('check a policy, and say what each rule means')
    .argument('[file]', 'the policy (default: PAYOUT_POLICY_FILE)')
    .option('--json', 'print {file, hash, platformId, default, groups, rules, warnings} as JSON')
    .addHelpText('after', CHECK_HELP_AFTER)
    .action((file: string | undefined, { json }: Flags) => {
      const { environment, colours, write, writeJson, writeError } = context;
      const { loaded } = file === undefined ? requirePolicy(environment) : readPolicyDraft(file, environment);
      if (json) writeJson(toPolicyJson(loaded));
      else write(formatPolicy(loaded, colours));
      for (const warning of loaded.warnings) writeError(`Warning: ${warning}.\n`);
    });
  command
    .command('explain')
    .description('say what each rule of the policy says of a payout')
    .argument('<payoutId>', 'the payout')
    .option(
      '--json',
      'print {payoutId, state, held, policyHash, decision, rules, approvals, unverified, unknown} as JSON',
    )
    .addHelpText('after', EXPLAIN_HELP_AFTER)
    .action(async (payoutId: string, { json }: Flags) => {
      const { loaded } = requirePolicy(context.environment);
      const keyring = findKeyring(context.environment);
      const payout = await withAccount(context, async ({ ledger }) => readPayout(ledger, payoutId));
      const explanation = explainPayout(payout, loaded, keyring, Date.now());
      if (json) context.writeJson(toExplanationJson(payout, loaded, explanation));
      else context.write(formatExplanation(payout, loaded, explanation, context.colours));
    });
  command
    .command('usage')
    .description('show how much of each window is used, and what is held')
    .option('--json', 'print {hash, at, rules, held, ratesAt} as JSON; amounts are decimal strings')
    .addHelpText('after', USAGE_HELP_AFTER)
    .action(async ({ json }: Flags) => {
      const report = await withAccount(context, async ({ ledger }) => readPolicyReport(ledger.connection));
      if (report === undefined) {
        throw new NotFoundError('No worker with a policy has told anything: set PAYOUT_POLICY_FILE, and start one');
      }
      if (json) context.writeJson(toUsageJson(report));
      else context.write(formatUsage(report, Date.now(), context.colours));
    });
}
