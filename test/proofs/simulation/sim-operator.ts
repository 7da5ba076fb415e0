import { ConflictError, RedisUnavailableError } from '../../../src/base/errors.js';
import { adviseAccount } from '../../../src/operator/account-advice.js';
import {
  carryOutAdoption,
  isComplete,
  planAdoption,
  UNWITNESSED,
  type AdoptionLedger,
} from '../../../src/operator/adoption.js';
import type { Plan } from './plan.js';
import type { JournalFile } from './journal-file.js';
import type { SimRedis } from './sim-redis.js';
import type { World } from './world.js';

/** A folder that an operator can read, and the journal file in it. */
export interface JournalFolder {
  readonly dir: string;
  readonly file: JournalFile;
}

export interface SimOperatorOptions {
  readonly world: Pick<World, 'note' | 'after' | 'fault'> & {
    readonly situations: Pick<World['situations'], 'meet'>;
  } & { readonly random: Pick<World['random'], 'between'> };
  readonly plan: Pick<Plan, 'settings'>;
  readonly redis: Pick<SimRedis, 'ledger' | 'refuses'>;
  readonly folders: () => readonly JournalFolder[];
  /** Whether the ledger has every payout of the application. */
  readonly hasAllPayouts: () => boolean;
  /** A mistake that may be planted: adopts whatever is missing. */
  readonly adoptsWithoutProof: boolean;
  /** In signed mode: what he signs when he resumes. */
  readonly signResume?: (() => string) | undefined;
}

const ACTOR = { by: 'ann', reason: 'looked it up' };

/** An operator who runs the commands that `payouts stats` shows, word for word, and does what their errors say. */
export class SimOperator {
  readonly #options: SimOperatorOptions;

  constructor(options: SimOperatorOptions) {
    this.#options = options;
  }

  /** @param refusing - the folders of hosts whose workers say that they refuse the ledger */
  async endStop(refusing: readonly string[]): Promise<void> {
    const { redis, world } = this.#options;
    const view = await redis.ledger.readSender();
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
    const [program, verb, ...words] = command.split(' ');
    if (program !== 'payouts') throw new Error(`not a command: ${command}`);
    if (verb === 'resume') {
      const resumed = await this.#options.redis.ledger.resume(this.#options.signResume?.());
      this.#options.world.note(() => `operator: resume ${String(resumed)}`);
    } else if (verb === 'adopt-ledger') {
      await this.#adopt(valuesOf('--journal', words), valuesOf('--give-up', words));
    } else throw new Error(`no operator can run ${command}`);
  }

  /** As `payouts adopt-ledger`, and once more as its error says. */
  async #adopt(dirs: readonly string[], giveUp: readonly string[]): Promise<void> {
    const { world, plan: settings, adoptsWithoutProof } = this.#options;
    const folders = this.#options.folders().filter(({ dir }) => dirs.includes(dir));
    const journals = folders.map(({ dir, file }) => file.toAdoptable({ host: dir, dir }));
    const ledger = this.#ledger();
    const plan = await planAdoption(ledger, journals, giveUp);
    if (plan.reasons.length === 0) {
      world.note(() => 'operator: there is nothing to adopt');
      return;
    }
    if (!isComplete(plan) && !adoptsWithoutProof) {
      world.note(() => `operator: lacking ${JSON.stringify([plan.unread, plan.unwitnessed])}`);
      const [readable, lost] = partition(
        plan.unread,
        ({ journalId, dir }) => this.#isThere(journalId, dir) && !dirs.includes(dir),
      );
      const more = plan.unwitnessed.length > 0 && readable.length === 0 ? [UNWITNESSED] : [];
      await this.#adopt(
        [...dirs, ...readable.map(({ dir }) => dir)],
        [...giveUp, ...lost.map(({ journalId }) => journalId), ...more],
      );
      return;
    }
    // The command says how many payouts it makes unknown: the operator compares that with what the application has open.
    if (plan.holdsSendable && !this.#options.hasAllPayouts()) {
      world.note(() => 'operator: the ledger lacks payouts of the application, which have to be enqueued first');
      return;
    }
    const { inFlightMaxMs } = settings.settings;
    const adoption = await carryOutAdoption(ledger, journals, plan, { actor: ACTOR, at: 0, inFlightMaxMs });
    world.situations.meet(giveUp.length > 0 ? 'a ledger is adopted, and a journal given up' : 'a ledger is adopted');
    world.note(() => `operator: adopted ${JSON.stringify({ ...adoption, giveUp })}`);
  }

  #isThere(journalId: string, dir: string): boolean {
    return this.#options.folders().some((folder) => folder.dir === dir && folder.file.journalId === journalId);
  }

  /** The ledger as a command sees it: each call takes time, and the command may be interrupted between two. */
  #ledger(): AdoptionLedger {
    const { redis, world } = this.#options;
    const { ledger } = redis;
    const call = async <Reply>(run: () => Promise<Reply>): Promise<Reply> => {
      await new Promise<void>((resolve) => {
        world.after(world.random.between(0.1, 20), resolve);
      });
      if (redis.refuses || world.fault(0.02)) throw new RedisUnavailableError('the command was interrupted');
      return run();
    };
    return {
      readSender: async () => call(async () => ledger.readSender()),
      findForgottenSends: async (sends) => call(async () => ledger.findForgottenSends(sends)),
      object: async (objection) => call(async () => ledger.object(objection)),
      adoptSends: async (sends, doubt) => call(async () => ledger.adoptSends(sends, doubt)),
      countSendable: async () => call(async () => ledger.countSendable()),
      holdSendable: async (doubt) => call(async () => ledger.holdSendable(doubt)),
      readBookmark: async () => call(async () => ledger.readBookmark()),
      adoptLedger: async (...args) => call(async () => ledger.adoptLedger(...args)),
    };
  }
}

function valuesOf(option: string, words: readonly string[]): string[] {
  return words.filter((_, index) => words[index - 1] === option);
}

function partition<Item>(items: readonly Item[], holds: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(holds), items.filter((item) => !holds(item))];
}
