import { Option, type Command } from 'commander';
import { z } from 'zod';
import { InvalidInputError } from '../../base/errors.js';
import { parseInput } from '../../base/fields.js';
import { batchField, lastMessage, type Payout } from '../../ledger/payout.js';
import type { PayoutState } from '../../ledger/states.js';
import type { CliContext } from '../context/cli-context.js';
import type { Selection } from './survey-payouts.js';

export interface ChoiceFlags {
  readonly batch?: string;
  readonly state?: PayoutState;
  readonly file?: string;
  readonly message?: string;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

interface Choice {
  readonly selection: Selection;
  readonly from: readonly PayoutState[];
  readonly matches: (payout: Payout) => boolean;
}

/** @param states - states that the command can change */
export function addChoiceOptions(command: Command, states: readonly PayoutState[]): Command {
  return command
    .option('--batch <name>', 'the payouts of this batch')
    .addOption(new Option('--state <state>', 'the payouts in this state').choices(states))
    .option('--message <text>', 'those whose last message has this text in it')
    .option('--file <file>', 'the payouts that a file names, - for stdin')
    .option('--dry-run', 'count and add up many payouts, change nothing')
    .option('-y, --yes', 'do not ask; for many payouts needed where there is no terminal');
}

/** @returns the id if the command is about one payout, undefined for many */
export function requireOneOrMany(
  payoutId: string | undefined,
  flags: ChoiceFlags,
  command: Command,
): string | undefined {
  return requireIdsOrMany(payoutId === undefined ? [] : [payoutId], flags, command)[0];
}

/** @returns no ids if options choose the payouts */
export function requireIdsOrMany(
  payoutIds: readonly string[],
  { batch, state, file, message, dryRun, yes }: ChoiceFlags,
  command: Command,
): readonly string[] {
  const isMany = [batch, state, file, message].some((choice) => choice !== undefined);
  const isNamed = payoutIds.length > 0;
  if (!isNamed && !isMany) command.error('error: give a payoutId, --batch, --state, --message or --file');
  if (isNamed && (isMany || dryRun || yes)) {
    command.error(
      'error: --batch, --state, --message, --file, --dry-run and --yes are for many payouts: leave the payoutId out',
    );
  }
  if (file !== undefined && batch !== undefined) command.error('error: give --file or --batch, not both');
  return payoutIds;
}

export async function readChoice(
  context: CliContext,
  { batch, state, file, message, dryRun = false, yes = false }: ChoiceFlags,
  states: readonly PayoutState[],
  signal: AbortSignal,
): Promise<Choice> {
  parseInput(z.object({ '--batch': batchField.optional() }), { '--batch': batch });
  if (message?.trim() === '') throw new InvalidInputError([{ field: '--message', message: 'must not be empty' }]);
  // One payout needs none of it.
  const { requireSomebody } = await import('./run-bulk.js');
  requireSomebody({ yes, dryRun, file }, context);
  const text = message?.toLowerCase();
  return {
    selection: await readSelection(context, { batch, file }, signal),
    from: state === undefined ? states : [state],
    matches: (payout) => text === undefined || lastMessage(payout)?.toLowerCase().includes(text) === true,
  };
}

async function readSelection(
  context: CliContext,
  { batch, file }: { readonly batch: string | undefined; readonly file: string | undefined },
  signal: AbortSignal,
): Promise<Selection> {
  if (batch !== undefined) return { kind: 'batch', batch };
  if (file === undefined) return { kind: 'all' };
  const { readSelectionFile } = await import('./read-selection-file.js');
  return { kind: 'named', payouts: await readSelectionFile(context, file, 'nothing', signal) };
}
