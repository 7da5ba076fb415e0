import type { Command } from 'commander';
import { describeVerdict, listRuleVerdicts } from '../../control/policy/decide.js';
import type { LoadedPolicy } from '../../control/policy/policy-file.js';
import { DEFAULT_USD, type UsdSettings } from '../../control/policy/policy.js';
import { describeRule, type Verdict } from '../../control/policy/rule.js';
import { formatSpan } from '../../control/policy/values.js';
import { NotFoundError } from '../../base/errors.js';
import { formatAmount, formatCount, formatDuration, formatExactMoney, formatTimeUtc } from '../../base/format.js';
import type { HeldFor, Payout } from '../../ledger/payout.js';
import { type Currency, readGatewayFacts } from '../../ledger/reads/gateway-facts.js';
import {
  type BucketUsage,
  describeRates,
  type PolicyReport,
  readPolicyReport,
  type RuleUsage,
  unitOfUsage,
} from '../../ledger/reads/policy-report.js';
import { type PayoutState, STATE_MEANING } from '../../ledger/states.js';
import { explainPayout, type Explanation } from '../../control/operator/explain-payout.js';
import { withAccount } from '../context/account.js';
import type { CliContext } from '../context/cli-context.js';
import { findKeyring, readPolicyDraft, requirePolicy } from '../context/keys.js';
import { help } from '../context/flags.js';
import { colourState, type Fact, formatFacts, formatTable } from '../output/format-table.js';

interface Flags {
  readonly json?: true;
}

export function definePolicyCommand(command: Command, context: CliContext): void {
  command.addHelpText(
    'after',
    help(
      'A policy is a YAML file with rules for what may leave an account (docs/control.md). It only holds payouts: it cancels none.',
      'payouts policy check',
      'payouts policy explain invoice-77',
    ),
  );
  command
    .command('check')
    .description('check a policy, and say what each rule means')
    .argument('[file]', 'the policy (default: PAYOUT_POLICY_FILE)')
    .option('--json', 'print {file, hash, platformId, default, groups, rules, warnings} as JSON')
    .addHelpText(
      'after',
      help(
        `Only root and the user of this process may be able to write the file, its lists and their folders. Rules that ask for approvals, or
count per signer, need PAYOUT_KEYS_FILE. Exit code 2: the file cannot be used.`,
        'payouts policy check',
        'payouts policy check ./policy.yaml --json | jq -r .hash',
      ),
    )
    .action(async (file: string | undefined, { json }: Flags) => {
      const { environment, colours, write, writeJson, writeError } = context;
      const loaded = await (file === undefined ? requirePolicy(environment) : readPolicyDraft(file, environment));
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
    .addHelpText(
      'after',
      help(
        `Asks every rule of PAYOUT_POLICY_FILE with what this host can know. What was spent, and rates that are not pinned, only the worker
knows; the answer says if that matters. Exit code 5: the record was altered, and makes no sense.`,
        'payouts policy explain invoice-77',
        'payouts policy explain invoice-77 --json | jq .decision',
      ),
    )
    .action(async (payoutId: string, { json }: Flags) => {
      const loaded = await requirePolicy(context.environment);
      const keyring = findKeyring(context.environment);
      const payout = await withAccount(context, async ({ ledger }) => ledger.require(payoutId));
      const explanation = explainPayout(payout, loaded, keyring, Date.now());
      if (json) context.writeJson(toExplanationJson(payout, loaded, explanation));
      else context.write(formatExplanation(payout, loaded, explanation, context.colours));
    });
  command
    .command('usage')
    .description('show how much of each window is used, and what is held')
    .option('--json', 'print {hash, at, rules, held, ratesAt} as JSON; amounts are decimal strings')
    .addHelpText(
      'after',
      help(
        `What the worker that sends counts in each window, at most ten addresses or signers of a rule, the fullest first. It publishes that every
10 s, for people: who can write to Redis can alter it. Exit code 3: no worker with a policy has published anything yet.`,
        'payouts policy usage',
        "payouts policy usage --json | jq '.rules[] | {rule, used: .buckets[0].ratio}'",
      ),
    )
    .action(async ({ json }: Flags) => {
      const [report, { currencies }] = await withAccount(context, async ({ ledger: { connection } }) =>
        Promise.all([readPolicyReport(connection), readGatewayFacts(connection)]),
      );
      if (report === undefined) {
        throw new NotFoundError(
          'No worker with a policy has published anything: set PAYOUT_POLICY_FILE, and start one',
        );
      }
      if (json) context.writeJson(toUsageJson(report));
      else context.write(formatUsage(report, Date.now(), currencies, context.colours));
    });
}

function formatPolicy({ policy, hash, file }: LoadedPolicy, colours: CliContext['colours']): string {
  const { uncovered, usd, groups, approvalsExpireAfterMs, rules } = policy;
  const rest = uncovered === 'hold' ? 'held' : 'sent';
  const facts: readonly Fact[] = [
    ['hash', hash],
    ['default', `${uncovered}: a payout that no cap covers is ${rest}`],
    ['dollars', describeUsd(usd ?? DEFAULT_USD)],
    ['approvals', `hold for ${formatSpan(approvalsExpireAfterMs)}`],
    ...[...groups].map(([name, persons]): Fact => [`group ${name}`, [...persons].join(', ')]),
  ];
  return [
    `${colours.bold(file)}  policy of account ${policy.platformId}\n\n`,
    formatFacts(colours, facts),
    '\nAll rules are checked, and the strictest counts. What equals a limit passes.\n',
    formatTable(rules.map((rule) => ['', rule.name, describeRule(rule)])),
  ].join('');
}

function describeUsd(usd: UsdSettings): string {
  const pinned = [...usd.pinned].map(([paymentId, rate]) => `1 of currency ${paymentId} is ${rate} USD`);
  const moved = `one that moved by more than ${usd.maxMovePercent}% counts once it has stood as long`;
  return [`a rate counts for ${formatSpan(usd.maxAgeMs)}; ${moved}`, ...pinned].join('; ');
}

function toPolicyJson({ policy, hash, file, warnings }: LoadedPolicy): object {
  const { platformId, uncovered, groups, rules } = policy;
  return {
    ...{ file, hash, platformId, default: uncovered },
    groups: Object.fromEntries([...groups].map(([name, persons]) => [name, [...persons]])),
    rules: rules.map((rule) => ({ name: rule.name, over: rule.over.kind, meaning: describeRule(rule) })),
    warnings,
  };
}

const MAY_STILL_BE_SENT: readonly PayoutState[] = ['queued', 'held', 'rejected', 'unknown'];

function formatExplanation(
  payout: Payout,
  { policy, hash, file }: LoadedPolicy,
  explanation: Explanation,
  colours: CliContext['colours'],
): string {
  const { payoutId, state, held } = payout;
  const { decision, unverified, unknown, approvals, rejectedBy } = explanation;
  const rows = listRuleVerdicts(policy, decision).map(({ rule, text }) => ['', rule, text]);
  const notes = [
    ...(unverified === undefined
      ? []
      : [`Its signature does not count, so it is held whatever the policy says. ${unverified}`]),
    ...unknown.map((each) => `Not known on this host: ${each}.`),
  ];
  return [
    `${colours.bold(payoutId)}  ${colourState(state, colours)}: ${STATE_MEANING[state]}\n`,
    `  ${formatExactMoney(payout.amount, payout.paymentId, [])} to ${payout.addressTo}\n\n`,
    held === undefined ? '' : `Held now: ${describeHold(held)}\n\n`,
    `Policy ${file}, ${hash}\n`,
    MAY_STILL_BE_SENT.includes(state)
      ? `With what this host knows, the payout ${describeVerdict(decision.verdict)}\n`
      : `The policy does not decide about it any more. With what this host knows, one like it ${describeVerdict(decision.verdict)}\n`,
    formatTable(rows),
    describeApprovals(approvals),
    rejectedBy.length === 0 ? '' : `\nRejected by ${rejectedBy.join(', ')}, which counts before every rule\n`,
    notes.length === 0 ? '' : `\n${notes.join('\n')}\n`,
  ].join('');
}

function describeHold({ kind, reason, message, rule, until, needs }: HeldFor): string {
  const parts = [
    `${kind} (${reason}${rule === undefined ? '' : `, rule ${rule}`}): ${message}`,
    until === undefined ? '' : `until ${formatTimeUtc(until)}`,
    needs === undefined ? '' : `approvals that are missing, by ${needs.by}: ${needs.persons}`,
  ];
  return parts.filter(Boolean).join('; ');
}

function describeApprovals({ approvedBy, refused }: Explanation['approvals']): string {
  const lines = [
    approvedBy.size === 0 ? '' : `\nApproved by ${[...approvedBy].join(', ')}\n`,
    ...refused.map(({ by, message }) => `\nAn approval does not count, by key "${by}": ${message}\n`),
  ];
  return lines.join('');
}

function toExplanationJson(
  { payoutId, state, held }: Payout,
  { policy, hash }: LoadedPolicy,
  { decision, approvals, rejectedBy, unverified, unknown }: Explanation,
): object {
  return {
    ...{ payoutId, state, held, policyHash: hash, decision: toVerdictJson(decision.verdict) },
    rules: listRuleVerdicts(policy, decision).map(({ rule, verdict }) =>
      verdict === undefined ? { rule, kind: 'not_about_it' } : toVerdictJson(verdict),
    ),
    approvals: { approvedBy: [...approvals.approvedBy], rejectedBy, refused: approvals.refused },
    unverified,
    unknown,
  };
}

function toVerdictJson(verdict: Verdict): object {
  const { rule, kind } = verdict;
  const { reason, until } = kind === 'send' ? {} : verdict;
  const needs = kind === 'approve' ? { by: verdict.by, persons: verdict.missing } : undefined;
  return {
    rule,
    kind,
    reason,
    until: until === undefined ? undefined : toIso(until),
    needs,
    text: describeVerdict(verdict),
  };
}

function toIso(at: number): string {
  return new Date(at).toISOString();
}

const BAR_WIDTH = 20;

/** An older report comes from a stopped worker. */
const CURRENT_FOR_MS = 60_000;

function formatUsage(
  report: PolicyReport,
  now: number,
  currencies: readonly Currency[],
  colours: CliContext['colours'],
): string {
  const { hash, at, rules, held } = report;
  const rates = describeRates(report, now);
  const ageMs = Math.max(0, now - at);
  const age = `${formatDuration(ageMs)} ago`;
  const facts: readonly Fact[] = [
    ['policy', hash],
    ['published', ageMs > CURRENT_FOR_MS ? colours.red(`${age}: no worker with a policy sends now`) : age],
    ['rates', rates],
    ...held.map(({ rule, reason, count }): Fact => ['held', `${formatCount(count, 'payout')} by ${rule} (${reason})`]),
  ];
  const rows = rules.flatMap((rule) => rule.buckets.map((bucket) => toRow(rule, bucket, currencies)));
  return [
    formatFacts(colours, facts),
    rows.length === 0 ? '\nNo rule has a window.\n' : `\n${formatTable(rows)}`,
    ...rules.flatMap(({ rule, unknown }) => (unknown === null ? [] : [`${rule}: ${unknown}\n`])),
  ].join('');
}

function toRow(
  usage: RuleUsage,
  { bucket, spent, wanted, ratio }: BucketUsage,
  currencies: readonly Currency[],
): string[] {
  const { rule, limit, withinMs } = usage;
  const name = unitOfUsage(usage, currencies);
  const waits = Number(wanted) === 0 ? '' : `${formatAmount(wanted, name)} wanted`;
  return [
    '',
    rule,
    bucket,
    toBar(ratio),
    `${Math.round(ratio * 100)} %`,
    `${formatAmount(spent)} of ${formatAmount(limit, name)} in ${formatSpan(withinMs)}`,
    waits,
  ];
}

function toBar(ratio: number): string {
  const full = Math.min(BAR_WIDTH, Math.round(ratio * BAR_WIDTH));
  return `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
}

function toUsageJson({ hash, at, rules, held, ratesAt }: PolicyReport): object {
  const toTime = (ms: number): string => new Date(ms).toISOString();
  return { hash, at: toTime(at), rules, held, ratesAt: ratesAt === null ? null : toTime(ratesAt) };
}
