import { Command, Help } from 'commander';
import type { Environment } from '../../config.js';
import type { AccountScope } from './choose-account.js';
import type { CliContext } from './cli-context.js';
import { readVersion } from '../../version.js';
import { describeError, EXIT_CODES, toExitCode } from './exit-code.js';

/** Gives a command its options, help text and action. */
export type DefineCommand = (command: Command, context: CliContext) => void;

/** A command, as far as the help of the program needs it. */
export interface CommandEntry {
  /** Name, then what a call takes, as Commander writes it in a list of commands: `get [options] [payoutId]`. */
  readonly usage: string;
  readonly description: string;
  /** @defaultValue `one` */
  readonly accounts?: AccountScope;
  /** Imports the rest: other commands start faster, and in less memory, without it. */
  readonly load: () => Promise<DefineCommand>;
}

/** Commands under a heading of the help text. */
export interface CommandGroup {
  readonly heading: string;
  readonly commands: readonly CommandEntry[];
}

const HELP_AFTER = `
Environment:
  REDIS_URL            Redis of the ledger (default: redis://127.0.0.1:6379)
  GATEWAY_PLATFORM_ID  the merchant account; --account chooses one of PAYOUT_ACCOUNTS_FILE
  docs/configuration.md lists all variables; \`payouts doctor\` checks them.

Exit codes:
  0  done
  1  failed
  2  invalid usage, input or configuration
  3  not found
  4  conflict with the current state
  5  not verified: a signature or an approval is missing or does not count

Examples:
  payouts enqueue --payout-id invoice-77 --payment-id 6 --amount 12.5 --address-to TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf
  payouts get invoice-77
  payouts list --state unknown

Run \`payouts <command> --help\` for the options and examples of a command.
`;

/**
 * Runs the command that the arguments name.
 * @param args - the arguments after the program's name
 * @returns the exit code; errors have been written to stderr
 */
export async function runProgram(
  groups: readonly CommandGroup[],
  args: readonly string[],
  context: CliContext,
): Promise<number> {
  try {
    const program = await createProgram(groups, args, context);
    await program.parseAsync(args, { from: 'user' });
    return EXIT_CODES.done;
  } catch (error) {
    context.writeError(describeError(error));
    return toExitCode(error);
  }
}

async function createProgram(
  groups: readonly CommandGroup[],
  args: readonly string[],
  context: CliContext,
): Promise<Command> {
  const usages = new Map<Command, string>();
  // Commander copies these settings to each command when it is added, so they come first.
  const program = new Command('payouts')
    .description('Payout queue for a payment gateway: never too fast, never twice, never lost.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .addHelpText('after', HELP_AFTER)
    .exitOverride()
    .configureHelp({ subcommandTerm: (command) => usages.get(command) ?? new Help().subcommandTerm(command) })
    .configureOutput({
      writeOut: context.write,
      writeErr: context.writeError,
      outputError: (text, write) => {
        write(text.replace(/^error: /, 'payouts: '));
      },
    });
  // A script for a shell names the options of every command.
  const definesAll = args[0] === 'completion';
  for (const { heading, commands } of groups) {
    program.commandsGroup(heading);
    for (const { usage, description, accounts = 'one', load } of commands) {
      const [name = ''] = usage.split(' ');
      const command = program.command(name).description(description);
      usages.set(command, usage);
      // Wherever it stands: which argument is the command's name, Commander finds out later.
      if (!args.includes(name) && !definesAll) continue;
      const define = await load();
      if (accounts === 'none') define(command, context);
      else await defineForAccount(command, context, accounts, define);
    }
  }
  // Last, to be listed in the last group.
  return program.helpCommand('help [command]', 'print help for a command');
}

/** Gives a command, or each command under it, the option `--account`; what it reads of the environment is the account's. */
async function defineForAccount(
  command: Command,
  context: CliContext,
  scope: Exclude<AccountScope, 'none'>,
  define: DefineCommand,
): Promise<void> {
  // The help of the program needs none of it.
  const { chooseAccount } = await import('./choose-account.js');
  let account: string | undefined;
  let environment: Environment | undefined;
  define(
    command,
    Object.create(context, {
      environment: { get: () => (environment ??= chooseAccount(context.environment, account, scope)) },
    }) as CliContext,
  );
  const commands = command.commands.length === 0 ? [command] : command.commands;
  for (const one of commands) one.option('--account <platformId>', ACCOUNT_HELP[scope]);
  command.hook('preAction', (_, action) => {
    account = action.opts<{ readonly account?: string }>().account;
  });
}

const ACCOUNT_HELP = {
  one: 'the merchant account (default: that of GATEWAY_PLATFORM_ID, or the only one of PAYOUT_ACCOUNTS_FILE)',
  all: 'this merchant account only (default: all of PAYOUT_ACCOUNTS_FILE)',
};
