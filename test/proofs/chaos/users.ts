import { execFile } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { Payment } from '../../../src/sandbox/sandbox-account.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { UNSIGNED, type KeyFiles, SIGNING } from '../signing.js';
import { PLATFORM_ID, SECRET_KEY, paymentOf, type Plan } from './plan.js';

type OperatorOptions = Readonly<{
  redisUrl: string;
  dir: string;
  journalDir: string;
  gatewayUrl: string;
  keys: KeyFiles | undefined;
  forgetsKey: boolean;
  readPayments: () => Promise<readonly Payment[]>;
  note: (text: string) => void;
}>;

type Signing = 'signed' | 'unsigned' | 'forgotten';

const COMMAND_WITHIN_MS = 30_000;
const CERTAIN_AFTER_MS = 3_000;

/**
 * An operator who runs the command that `payouts stats` shows, as it stands there. With keys, he asks the gateway
 * about each payout that nobody else can decide, and signs what he states.
 */
class Operator {
  readonly #options: OperatorOptions;
  adoptions = 0;
  readonly lacking: string[] = [];
  readonly unsigned = new Set<string>([UNSIGNED.payoutId]);
  readonly #seen = new Map<string, Readonly<{ situation: string; since: number }>>();
  #forgetsKey: boolean;

  constructor(options: OperatorOptions) {
    this.#options = options;
    this.#forgetsKey = options.forgetsKey;
  }

  async endStop({ paused, objections }: AccountStats): Promise<void> {
    if (!paused && objections.length === 0) return;
    const stats = await this.#run('payouts stats');
    const command = /: (?:Paused|Stopped: .*)\n[\s\S]*?\n {2}(payouts .+)/.exec(stats.text)?.[1];
    if (command === undefined) return;
    const text = await this.#follow(command);
    const next = /`(payouts adopt-ledger [^`]+)`/.exec(text)?.[1];
    if (next !== undefined && next !== command) await this.#follow(next);
  }

  async endKeptPause(): Promise<void> {
    await this.#follow('payouts resume --reason WHY');
  }

  async pause(): Promise<void> {
    await this.#state('payouts pause', 'unsigned');
  }

  async decide(producer: PayoutProducer): Promise<void> {
    const states = ['unknown', 'rejected', 'held'] as const;
    const pages = await Promise.all(states.map(async (state) => producer.list({ state })));
    const certain = pages.flatMap(({ payouts }) => payouts).filter((payout) => this.#isCertain(payout));
    if (certain.length === 0) return;
    const payments = await this.#options.readPayments();
    for (const payout of certain) {
      const paid = payments.find(({ addressTo }) => addressTo === payout.addressTo);
      await this.#decideOne(payout, paid?.txhash);
      // What was refused is tried again, and what comes back is looked at again.
      this.#seen.delete(payout.payoutId);
    }
  }

  /** @returns what is wrong with the send journals in these folders, with their signatures, or with what Redis says */
  async verifyJournals([own = '', ...others]: readonly string[]): Promise<string[]> {
    const journals = others.map((dir) => ` --journal '${dir}'`).join('');
    const { code, text } = await this.#run(`export SEND_JOURNAL_DIR='${own}'\npayouts audit verify${journals}`);
    return code === 0 ? [] : [`the journals do not pass \`payouts audit verify\` (exit code ${code}): ${text}`];
  }

  #isCertain({ payoutId, state, attempt, updatedAt }: Payout) {
    if (payoutId === UNSIGNED.payoutId) return false;
    const situation = `${state} ${attempt} ${updatedAt}`;
    const seen = this.#seen.get(payoutId);
    if (seen?.situation === situation) return performance.now() - seen.since >= CERTAIN_AFTER_MS;
    this.#seen.set(payoutId, { situation, since: performance.now() });
    return false;
  }

  async #decideOne({ payoutId, state, held }: Payout, txhash: string | undefined) {
    if (txhash !== undefined) {
      if (state === 'unknown') await this.#state(`payouts resolve ${payoutId} --sent --txhash ${txhash}`, 'unsigned');
      return;
    }
    const command = { unknown: 'resolve --not-sent', rejected: 'retry', held: 'release' }[state as 'held'];
    // An operator who forgets the key needs it for the release.
    const isForgotten = state !== 'held' && this.#forgetsKey;
    if (isForgotten) this.unsigned.add(payoutId);
    if (isForgotten) this.#forgetsKey = false;
    const needsKey = held === undefined || held.reason === 'sent_before';
    const signing = isForgotten ? 'forgotten' : needsKey ? 'signed' : 'unsigned';
    await this.#state(`payouts ${command} ${payoutId}`, signing);
  }

  async #state(command: string, signing: Signing) {
    await this.#runSigned(`${command} --by chaos --reason 'asked the gateway'`, signing);
  }

  async #follow(command: string) {
    const isAdoption = command.includes(' adopt-ledger ');
    const filledIn = `${command.replace(/\bWHY$/, "'as it says'")} --by chaos${isAdoption ? ' --yes' : ''}`;
    const { code, text } = await this.#runSigned(filledIn, 'signed');
    if (isAdoption && code === 0) this.adoptions += 1;
    if (isAdoption && /no journal has/.test(text)) this.lacking.push(text.trim());
    return text;
  }

  async #runSigned(command: string, signing: Signing): Promise<{ code: number; text: string }> {
    const { keys, note } = this.#options;
    const signed = keys === undefined || signing !== 'signed' ? command : `${command} --key '${keys.operatorKeyFile}'`;
    const result = await this.#run(signing === 'forgotten' ? `unset PAYOUT_KEYS_FILE\n${signed}` : signed);
    note(`operator: ${command} (${signing}): exit code ${result.code}`);
    return result;
  }

  async #run(command: string): Promise<{ code: number; text: string }> {
    const { redisUrl, dir, journalDir, gatewayUrl, keys } = this.#options;
    const script = `payouts() { '${process.execPath}' '${findBuiltProgram()}' "$@"; }\n${command}`;
    const env = {
      ...{ PATH: process.env['PATH'], NO_COLOR: '1', REDIS_URL: redisUrl, SEND_JOURNAL_DIR: journalDir },
      ...{ GATEWAY_PLATFORM_ID: String(PLATFORM_ID), GATEWAY_BASE_URL: gatewayUrl, GATEWAY_SECRET_KEY: SECRET_KEY },
      ...keys?.workerEnvironment,
    };
    return new Promise((resolve) => {
      execFile('sh', ['-c', script], { env, timeout: COMMAND_WITHIN_MS }, (error, stdout, stderr) => {
        const text = `${stdout}${stderr}`;
        appendFileSync(join(dir, 'operator.log'), `$ ${command}\n${text}\n`);
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), text });
      });
    });
  }
}

const CHECK_EVERY_MS = 150;

interface UsersOptions extends Omit<OperatorOptions, 'forgetsKey'> {
  readonly plan: Plan;
  readonly sinceChaosMs: () => number;
  readonly countKeptPauses: () => Promise<number>;
}

export class Users {
  readonly producer: PayoutProducer;
  readonly operator: Operator;
  readonly payoutIds: readonly string[];
  readonly #options: UsersOptions;
  readonly #accepted = new Set<string>();
  #isStopped = false;
  #keptPauses = 0;
  #hasPaused = false;
  readonly #working: Promise<void>;

  constructor(options: UsersOptions) {
    const { plan, redisUrl, keys } = options;
    this.#options = options;
    this.operator = new Operator({ ...options, forgetsKey: plan.forgetsKey });
    const signing = keys === undefined ? {} : { ...SIGNING, keysFile: keys.keysFile };
    this.producer = new PayoutProducer({ redisUrl, platformId: PLATFORM_ID, ...signing });
    this.payoutIds = plan.enqueueAtMs.map((_, index) => `P-${index + 1}`);
    this.#working = this.#work();
  }

  /** Redis came back older: the application asks again for all that it asked for, under the same payoutIds. */
  askAgain(): void {
    this.#accepted.clear();
  }

  async readStats(): Promise<AccountStats | undefined> {
    return this.producer.stats().catch(() => undefined);
  }

  get haveAskedForAll(): boolean {
    return this.#accepted.size === this.payoutIds.length;
  }

  async isDecided({ unknown, rejected, held }: AccountStats): Promise<boolean> {
    const unsigned = await this.producer.get(UNSIGNED.payoutId);
    return unknown + rejected + held === (unsigned?.state === 'held' ? 1 : 0);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#working;
    await this.producer.close();
  }

  async #work() {
    const { redisUrl, keys } = this.#options;
    if (keys !== undefined) await enqueueUnsigned(redisUrl, PLATFORM_ID);
    while (!this.#isStopped) {
      await this.#enqueueWhatIsDue();
      const stats = await this.readStats();
      if (stats !== undefined) await this.#operate(stats);
      await delay(CHECK_EVERY_MS);
    }
  }

  async #operate(stats: AccountStats) {
    const { keys, plan, sinceChaosMs, countKeptPauses } = this.#options;
    await this.operator.endStop(stats);
    if (keys === undefined || stats.objections.length > 0) return;
    if (!this.#hasPaused && sinceChaosMs() >= plan.pauseAtMs) {
      this.#hasPaused = true;
      await this.operator.pause();
    }
    try {
      await this.operator.decide(this.producer);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return;
    }
    // Only the worker knows of a pause that Redis has forgotten: its log says what to run.
    if (stats.paused || (await countKeptPauses()) === this.#keptPauses) return;
    await this.operator.endKeptPause();
    this.#keptPauses = await countKeptPauses();
  }

  async #enqueueWhatIsDue() {
    const { plan, sinceChaosMs } = this.#options;
    const due = this.payoutIds.filter(
      (payoutId, index) => (plan.enqueueAtMs[index] ?? 0) <= sinceChaosMs() && !this.#accepted.has(payoutId),
    );
    if (due.length === 0) return;
    try {
      await this.producer.enqueueMany(due.map(paymentOf));
      for (const payoutId of due) this.#accepted.add(payoutId);
    } catch {
      // Redis unavailable: whether they were accepted is unclear, so the application asks again.
    }
  }
}

export async function enqueueUnsigned(redisUrl: string, platformId: number): Promise<void> {
  const stranger = new PayoutProducer({ redisUrl, platformId });
  await stranger.enqueue(UNSIGNED);
  await stranger.close();
}
