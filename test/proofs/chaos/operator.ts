import { execFile } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import { findBuiltProgram } from '../../support/built-program.js';
import type { KeyFiles } from '../signing.js';
import { PLATFORM_ID, SECRET_KEY } from './account.js';

export interface OperatorOptions {
  readonly redisUrl: string;
  readonly dir: string;
  /** The journal folder of the host at which the operator sits. */
  readonly journalDir: string;
  /** The dashboard, where the operator reads what to do there rather than from `payouts stats`. */
  readonly dashboardUrl: string | undefined;
  readonly gatewayUrl: string;
  /** Where payouts are signed. */
  readonly keys: KeyFiles | undefined;
  readonly note: (text: string) => void;
}

/** Whether a command states something that is signed; `forgotten`: it should have been, and the keyring is not known there. */
type Signing = 'signed' | 'unsigned' | 'forgotten';

const COMMAND_WITHIN_MS = 30_000;

/** An operator who runs the command that page or `payouts stats` shows, as it stands there. */
export class Operator {
  readonly #options: OperatorOptions;
  /** How often the ledger was adopted. */
  adoptions = 0;
  /** What an adoption lacked although every journal could be read. */
  readonly lacking: string[] = [];

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  /** Ends what stops the account, where something does. */
  async endStop({ paused, objections }: AccountStats): Promise<void> {
    if (!paused && objections.length === 0) return;
    const command = await this.#readCommand();
    if (command === undefined) return;
    const text = await this.#follow(command);
    // An error names the next command, where it can.
    const next = /`(payouts adopt-ledger [^`]+)`/.exec(text)?.[1];
    if (next !== undefined && next !== command) await this.#follow(next);
  }

  /** Resumes an account of which a worker says that it keeps a pause. */
  async endKeptPause(): Promise<void> {
    await this.#follow('payouts resume --reason WHY');
  }

  /** Runs a command about a payout, or the account. */
  async decide(command: string, signing: Signing): Promise<void> {
    await this.#runSigned(`${command} --by chaos --reason 'asked the gateway'`, signing);
  }

  /** @returns what is wrong with the send journals in these folders, with their signatures, or with what Redis says; or undefined */
  async verifyJournals([own = '', ...others]: readonly string[]): Promise<string | undefined> {
    const journals = others.map((dir) => ` --journal '${dir}'`).join('');
    const { code, text } = await this.#run(`export SEND_JOURNAL_DIR='${own}'\npayouts audit verify${journals}`);
    return code === 0 ? undefined : `the journals do not pass \`payouts audit verify\` (exit code ${code}): ${text}`;
  }

  /** Runs a command with words of the operator's own. */
  async #follow(command: string): Promise<string> {
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
    note(`operator: ${command}${signing === 'forgotten' ? ' (not signed)' : ''}: exit code ${result.code}`);
    return result;
  }

  async #readCommand(): Promise<string | undefined> {
    const { dashboardUrl } = this.#options;
    if (dashboardUrl === undefined) {
      const { text } = await this.#run('payouts stats');
      return /: (?:Paused|Stopped: .*)\n[\s\S]*?\n {2}(payouts .+)/.exec(text)?.[1];
    }
    const page = await fetch(`${dashboardUrl}payouts`)
      .then(async (response) => response.text())
      .catch(() => '');
    const shown = /role="alert"[\s\S]*?<pre><code>([\s\S]*?)<\/code><\/pre>/.exec(page)?.[1];
    return shown?.replaceAll(/<[^>]+>/g, '').replaceAll('&#39;', "'");
  }

  /** As a shell runs it, with `payouts` as the program that is tried here. */
  async #run(command: string): Promise<{ code: number; text: string }> {
    const { redisUrl, dir, journalDir, gatewayUrl, keys } = this.#options;
    const script = `payouts() { '${process.execPath}' '${findBuiltProgram()}' "$@"; }\n${command}`;
    const env = {
      PATH: process.env['PATH'],
      NO_COLOR: '1',
      REDIS_URL: redisUrl,
      GATEWAY_PLATFORM_ID: String(PLATFORM_ID),
      GATEWAY_BASE_URL: gatewayUrl,
      GATEWAY_SECRET_KEY: SECRET_KEY,
      SEND_JOURNAL_DIR: journalDir,
      ...(keys === undefined ? {} : { ...keys.workerEnvironment }),
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
