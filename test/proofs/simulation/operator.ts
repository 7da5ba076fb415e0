import { ConflictError, RedisUnavailableError } from '../../../src/base/errors.js';
import { adviseAccount } from '../../../src/operator/account-advice.js';
import { carryOutAdoption, isComplete, planAdoption, UNWITNESSED } from '../../../src/operator/adoption.js';
import type { AdoptionLedger } from '../../../src/operator/adoption.js';
import type { WorldLedger } from '../../world/world-ledger.js';
import type { World } from '../../world/world.js';
import type { JournalFile } from './journal-file.js';

export interface JournalFolder {
  readonly dir: string;
  readonly file: JournalFile;
}

export interface SimOperatorOptions {
  readonly world: World;
  readonly ledger: WorldLedger;
  readonly inFlightMaxMs: number;
  readonly folders: () => readonly JournalFolder[];
  readonly refuses?: () => boolean;
  readonly hasAllPayouts?: () => boolean;
  readonly adoptsWithoutProof: boolean;
  readonly signResume?: (() => string) | undefined;
}

const ACTOR = { by: 'ann', reason: 'looked it up' };

/** An operator who runs the commands that `payouts stats` shows, word for word, and does what their errors say. */
export class SimOperator {
  readonly #options: SimOperatorOptions;

  constructor(options: SimOperatorOptions) {
    this.#options = options;
  }

  async endStop(refusing: readonly string[]): Promise<void> {
    const { ledger, world } = this.#options;
    const view = await ledger.readSender();
    const [advice] = adviseAccount({
      ...view,
      platformId: 1,
      objections: view.objections,
      paused: view.pausedReason !== undefined,
      pausedReason: view.pausedReason ?? null,
    });
    // A worker may refuse before its objection is recorded: its log says what to run.
    const log = refusing.flatMap((dir) => ['--journal', dir]).join(' ');
    const command = advice?.command ?? (log === '' ? undefined : `payouts adopt-ledger ${log} --reason WHY`);
    if (command === undefined) return;
    world.note(() => `operator: ${command}`);
    try {
      await this.#run(command);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError || error instanceof ConflictError)) throw error;
      world.note(() => `operator: ${error.message}`);
    }
  }

  async #run(command: string): Promise<void> {
    const { ledger, world, signResume } = this.#options;
    const [program, verb, ...words] = command.split(' ');
    const valuesOf = (option: string): string[] => words.filter((_, index) => words[index - 1] === option);
    if (program === 'payouts' && verb === 'adopt-ledger') {
      await this.#adopt(valuesOf('--journal'), valuesOf('--give-up'));
    } else if (program === 'payouts' && verb === 'resume') {
      const resumed = await ledger.resume(signResume?.());
      world.note(() => `operator: resume ${String(resumed)}`);
    } else throw new Error(`no operator can run ${command}`);
  }

  async #adopt(dirs: readonly string[], giveUp: readonly string[]): Promise<void> {
    const { world, inFlightMaxMs, adoptsWithoutProof, hasAllPayouts } = this.#options;
    const folders = this.#options.folders();
    const journals = folders
      .filter(({ dir }) => dirs.includes(dir))
      .map(({ dir, file }) => file.toAdoptable({ host: dir, dir }));
    const ledger = this.#interruptible();
    const plan = await planAdoption(ledger, journals, giveUp);
    if (plan.reasons.length === 0) {
      world.note(() => 'operator: there is nothing to adopt');
      return;
    }
    if (!isComplete(plan) && !adoptsWithoutProof) {
      world.note(() => `operator: lacking ${JSON.stringify([plan.unread, plan.unwitnessed])}`);
      const isReadable = ({ journalId, dir }: { journalId: string; dir: string }): boolean =>
        !dirs.includes(dir) && folders.some((folder) => folder.dir === dir && folder.file.journalId === journalId);
      const readable = plan.unread.filter(isReadable);
      const lost = plan.unread.filter((journal) => !isReadable(journal));
      const more = plan.unwitnessed.length > 0 && readable.length === 0 ? [UNWITNESSED] : [];
      await this.#adopt(
        [...dirs, ...readable.map(({ dir }) => dir)],
        [...giveUp, ...lost.map(({ journalId }) => journalId), ...more],
      );
      return;
    }
    // The command says how many payouts it makes unknown: the operator compares that with what the application has open.
    if (plan.holdsSendable && hasAllPayouts?.() === false) {
      world.note(() => 'operator: the ledger lacks payouts of the application, which have to be enqueued first');
      return;
    }
    const adoption = await carryOutAdoption(ledger, journals, plan, { actor: ACTOR, at: 0, inFlightMaxMs });
    world.situations?.meet(giveUp.length > 0 ? 'a ledger is adopted, and a journal given up' : 'a ledger is adopted');
    world.note(() => `operator: adopted ${JSON.stringify({ ...adoption, giveUp })}`);
  }

  #interruptible(): AdoptionLedger {
    const { world, ledger, refuses } = this.#options;
    const call =
      (name: keyof AdoptionLedger) =>
      async (...args: never[]): Promise<never> => {
        await new Promise<void>((resolve) => {
          world.after(world.random.between(0.1, 20), resolve, { kind: 'timeout', label: 'operator' });
        });
        if (refuses?.() === true || world.fault(0.02)) throw new RedisUnavailableError('the command was interrupted');
        return (ledger[name] as (...given: never[]) => Promise<never>).apply(ledger, args);
      };
    const names = [
      ...(['readSender', 'findForgottenSends', 'object', 'adoptSends', 'countSendable', 'holdSendable'] as const),
      ...(['readBookmark', 'adoptLedger'] as const),
    ];
    return Object.fromEntries(names.map((name) => [name, call(name)])) as unknown as AdoptionLedger;
  }
}
