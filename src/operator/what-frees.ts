import type { Payout } from '../ledger/payout.js';
import { nextSteps, type NextStep } from './next-steps.js';
import type { AdviceOptions } from './signed-command.js';

/** What releases a held payout, with the command if a person must act. */
export function whatFrees(payout: Payout, platformId: number, options: AdviceOptions = {}): NextStep {
  const { held } = payout;
  const step = (name: string): Pick<NextStep, 'command'> => {
    const found = nextSteps(payout, platformId, options).find(({ command }) => command?.startsWith(`payouts ${name} `));
    return found?.command === undefined ? {} : { command: found.command };
  };
  const byItself = held?.until === undefined ? '' : ', or by itself at that time';
  if (held?.needs !== undefined) return { when: `They approve it${byItself}.`, ...step('approve') };
  if (held?.kind === 'policy' && held.reason === 'wait') {
    return { when: 'Nothing to do: it is sent by itself once its rule lets it pass.' };
  }
  if (held?.kind === 'policy') {
    return {
      when: `A change of the policy frees it${byItself}. If it is not to be paid, cancel it.`,
      ...step('cancel'),
    };
  }
  return {
    when: 'Once the cause is gone, this queues it again; it is checked again before it is sent.',
    ...step('release'),
  };
}
