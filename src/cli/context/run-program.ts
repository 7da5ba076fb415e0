import { Command, Help } from 'commander';
import type { Environment } from '../../base/config.js';
import type { AccountScope, ChosenAccount } from './accounts.js';
import type { CliContext } from './cli-context.js';
import { readVersion } from '../../base/version.js';
import { describeError, EXIT_CODES, toExitCode } from './exit-code.js';

type DefineCommand = (command: Command, context: CliContext) => void;

interface CommandEntry {
  /** As Commander lists a command: `get [options] [payoutId]`. */
  readonly usage: string;
  readonly description: string;
  /** @defaultValue `one` */
  readonly accounts?: AccountScope;
  readonly withoutAccount?: readonly string[];
  /** Imported late, so that other commands start faster. */
  readonly load: () => Promise<DefineCommand>;
}

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
  5  not verified: altered, or a signature is missing or does not count

Examples:
  payouts enqueue --payout-id invoice-77 --payment-id 6 --amount 12.5 --address-to TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf
  payouts get invoice-77
  payouts list --state unknown

Run \`payouts <command> --help\` for the options and examples of a command.
`;

/** The environment becomes the chosen account's before the command acts. */
type RunContext = Omit<CliContext, 'environment'> & { environment: Environment };

type ChooseAccount = (given: string | undefined, scope: 'one' | 'all') => Promise<void>;

/**
 * @param args - the arguments after the program's name
 * @returns the exit code; errors are already on stderr
 */
export async function runProgram(
  groups: readonly CommandGroup[],
  args: readonly string[],
  context: CliContext,
): Promise<number> {
  const own: RunContext = { ...context };
  let account: ChosenAccount | undefined;
  const choose: ChooseAccount = async (wanted, scope) => {
    if (wanted === undefined && !context.environment['PAYOUT_ACCOUNTS_FILE']) return;
    const { chooseAccount } = await import('./accounts.js');
    account = chooseAccount(context.environment, wanted, scope);
    own.environment = account.environment;
  };
  try {
    const program = await createProgram(groups, args, own, choose);
    await program.parseAsync(args, { from: 'user' });
    return EXIT_CODES.done;
  } catch (thrown) {
    const error = account === undefined ? thrown : (await import('./accounts.js')).nameAccounts(thrown, account);
    context.writeError(describeError(error));
    return toExitCode(error);
  }
}

async function createProgram(
  groups: readonly CommandGroup[],
  args: readonly string[],
  context: RunContext,
  choose: ChooseAccount,
): Promise<Command> {
  const usages = new Map<Command, string>();
  // Commander copies these settings to each added command, so they come first.
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
  // A completion script names the options of every command.
  const definesAll = args[0] === 'completion';
  for (const { heading, commands } of groups) {
    program.commandsGroup(heading);
    for (const { usage, description, accounts = 'one', withoutAccount = [], load } of commands) {
      const [name = ''] = usage.split(' ');
      const command = program.command(name).description(description);
      usages.set(command, usage);
      // Any position counts: only Commander finds out which argument is the command.
      if (!args.includes(name) && !definesAll) continue;
      const define = await load();
      define(command, context);
      if (accounts === 'none') continue;
      const commandsUnder = command.commands.filter((under) => !withoutAccount.includes(under.name()));
      for (const one of command.commands.length === 0 ? [command] : commandsUnder)
        addAccountOption(one, accounts, choose);
    }
  }
  // Added last, for the last group.
  return program.helpCommand('help [command]', 'print help for a command');
}

function addAccountOption(command: Command, scope: 'one' | 'all', choose: ChooseAccount): void {
  command
    .option('--account <platformId>', ACCOUNT_HELP[scope])
    .hook('preAction', async () => choose(command.opts<{ readonly account?: string }>().account, scope));
}

const ACCOUNT_HELP = {
  one: 'the merchant account (default: that of GATEWAY_PLATFORM_ID, or the only one of PAYOUT_ACCOUNTS_FILE)',
  all: 'this merchant account only (default: all of PAYOUT_ACCOUNTS_FILE)',
};
