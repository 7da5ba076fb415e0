import { execFile } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { RedisUnavailableError } from '../../../src/base/errors.js';
import type { GatewayApi } from '../../../src/base/settings.js';
import { PayoutProducer } from '../../../src/control/payout-producer.js';
import type { Payout } from '../../../src/ledger/payout.js';
import type { AccountStats } from '../../../src/ledger/reads/account-stats.js';
import type { Payment } from '../../../src/sandbox/sandbox-account.js';
import { findBuiltProgram } from '../../support/built-program.js';
import { UNSIGNED, type KeyFiles, SIGNING } from '../signing.js';
import { PLATFORM_ID, SECRET_KEY, paymentOf } from './plan.js';

const CHECK_EVERY_MS = 150;

type UsersOptions = Readonly<{
  plan: Readonly<{ api: GatewayApi; enqueueAtMs: readonly number[]; pauseAtMs: number; forgetsKey: boolean }>;
  redisUrl: string;
  dir: string;
  journalDir: string;
  gatewayUrl: string;
  keys: KeyFiles | undefined;
  readPayments: () => Promise<readonly Payment[]>;
  note: (text: string) => void;
  sinceChaosMs: () => number;
  countKeptPauses: () => Promise<number>;
}>;

/** `forgotten`: it should have been signed, and the keyring is not known there. */
type Signing = 'signed' | 'unsigned' | 'forgotten';

const COMMAND_WITHIN_MS = 30_000;
const CERTAIN_AFTER_MS = 3_000;

/** Runs the command that `payouts stats` shows, as it stands there. With keys, signs what the gateway says of a payout. */
function openOperator({ plan, keys, note, readPayments, ...options }: UsersOptions) {
  const unsigned = new Set<string>([UNSIGNED.payoutId]);
  const seen = new Map<string, Readonly<{ situation: string; since: number }>>();
  const lacking: string[] = [];
  let { forgetsKey } = plan;

  const run = async (command: string): Promise<{ code: number; text: string }> => {
    const script = `payouts() { '${process.execPath}' '${findBuiltProgram()}' "$@"; }\n${command}`;
    const env = {
      ...{ PATH: process.env['PATH'], NO_COLOR: '1', GATEWAY_PLATFORM_ID: String(PLATFORM_ID) },
      ...{ REDIS_URL: options.redisUrl, SEND_JOURNAL_DIR: options.journalDir },
      ...{ GATEWAY_BASE_URL: options.gatewayUrl, GATEWAY_SECRET_KEY: SECRET_KEY, GATEWAY_API: plan.api },
      ...keys?.workerEnvironment,
    };
    return new Promise((resolve) => {
      execFile('sh', ['-c', script], { env, timeout: COMMAND_WITHIN_MS }, (error, stdout, stderr) => {
        const text = `${stdout}${stderr}`;
        appendFileSync(join(options.dir, 'operator.log'), `$ ${command}\n${text}\n`);
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), text });
      });
    });
  };

  const runSigned = async (command: string, signing: Signing) => {
    const signed = keys === undefined || signing !== 'signed' ? command : `${command} --key '${keys.operatorKeyFile}'`;
    const result = await run(signing === 'forgotten' ? `unset PAYOUT_KEYS_FILE\n${signed}` : signed);
    note(`operator: ${command} (${signing}): exit code ${result.code}`);
    return result;
  };

  const state = async (command: string, signing: Signing) =>
    runSigned(`${command} --by chaos --reason 'asked the gateway'`, signing);

  const follow = async (command: string) => {
    const isAdoption = command.includes(' adopt-ledger ');
    const filledIn = `${command.replace(/\bWHY$/, "'as it says'")} --by chaos${isAdoption ? ' --yes' : ''}`;
    const { code, text } = await runSigned(filledIn, 'signed');
    if (isAdoption && code === 0) operator.adoptions += 1;
    if (isAdoption && /no journal has/.test(text)) lacking.push(text.trim());
    return text;
  };

  const isCertain = ({ payoutId, state: now, attempt, updatedAt }: Payout) => {
    const situation = `${now} ${attempt} ${updatedAt}`;
    const before = seen.get(payoutId);
    if (before?.situation !== situation) seen.set(payoutId, { situation, since: performance.now() });
    else if (payoutId !== UNSIGNED.payoutId) return performance.now() - before.since >= CERTAIN_AFTER_MS;
    return false;
  };

  const decideOne = async ({ payoutId, state: now, attempt, held }: Payout, gatewayId: string | undefined) => {
    if (gatewayId !== undefined) {
      // With v2 the workers find it by themselves.
      if (now !== 'unknown' || plan.api === 'v2') return;
      await state(`payouts resolve ${payoutId} --sent --gateway-id ${gatewayId}`, 'unsigned');
      return;
    }
    const command = { unknown: `resolve --not-sent --attempt ${attempt}`, rejected: 'retry', held: 'release' }[
      now as 'held'
    ];
    // An operator who forgets the key needs it for the release.
    const isForgotten = now !== 'held' && forgetsKey;
    if (isForgotten) {
      unsigned.add(payoutId);
      forgetsKey = false;
    }
    const needsKey = held === undefined || held.reason === 'sent_before';
    await state(`payouts ${command} ${payoutId}`, isForgotten ? 'forgotten' : needsKey ? 'signed' : 'unsigned');
  };

  const operator = {
    ...{ lacking, unsigned, adoptions: 0 },

    async endStop({ paused, objections }: AccountStats) {
      if (!paused && objections.length === 0) return;
      const stats = await run('payouts stats');
      const command = /: (?:Paused|Stopped: .*)\n[\s\S]*?\n {2}(payouts .+)/.exec(stats.text)?.[1];
      if (command === undefined) return;
      const text = await follow(command);
      // An error names the next command, where it can.
      const next = /`(payouts adopt-ledger [^`]+)`/.exec(text)?.[1];
      if (next !== undefined && next !== command) await follow(next);
    },

    endKeptPause: async () => follow('payouts resume --reason WHY'),
    pause: async () => state('payouts pause', 'unsigned'),

    /** About each payout that has been the same for long enough. */
    async decide(producer: PayoutProducer) {
      const states = ['unknown', 'rejected', 'held'] as const;
      const pages = await Promise.all(states.map(async (each) => producer.list({ state: each })));
      for (const payout of pages.flatMap(({ payouts }) => payouts).filter(isCertain)) {
        const paid = (await readPayments()).find(({ addressTo }) => addressTo === payout.addressTo);
        await decideOne(payout, paid?.gatewayId);
        seen.delete(payout.payoutId);
      }
    },

    async verifyJournals([own = '', ...others]: readonly string[]) {
      const journals = others.map((dir) => ` --journal '${dir}'`).join('');
      const { code, text } = await run(`export SEND_JOURNAL_DIR='${own}'\npayouts audit verify${journals}`);
      return code === 0 ? [] : [`the journals do not pass \`payouts audit verify\` (exit code ${code}): ${text}`];
    },
  };
  return operator;
}

export const isKnownByOrderId = ({ orderId }: Payment) => orderId !== undefined;

export type Users = ReturnType<typeof openUsers>;

export function openUsers(options: UsersOptions) {
  const { plan, redisUrl, keys, sinceChaosMs, countKeptPauses } = options;
  const operator = openOperator(options);
  const signing = keys === undefined ? {} : { ...SIGNING, keysFile: keys.keysFile };
  const producer = new PayoutProducer({ redisUrl, platformId: PLATFORM_ID, ...signing });
  const payoutIds = plan.enqueueAtMs.map((_, index) => `P-${index + 1}`);
  const accepted = new Set<string>();
  let isStopped = false;
  let keptPauses = 0;
  let hasPaused = false;
  const readStats = async () => producer.stats().catch(() => undefined);

  const operate = async (stats: AccountStats) => {
    await operator.endStop(stats);
    if (keys === undefined || stats.objections.length > 0) return;
    if (!hasPaused && sinceChaosMs() >= plan.pauseAtMs) {
      hasPaused = true;
      await operator.pause();
    }
    try {
      await operator.decide(producer);
    } catch (error) {
      if (!(error instanceof RedisUnavailableError)) throw error;
      return;
    }
    // Only the worker knows of a pause that Redis has forgotten: its log says what to run.
    if (stats.paused || (await countKeptPauses()) === keptPauses) return;
    await operator.endKeptPause();
    keptPauses = await countKeptPauses();
  };

  const enqueueWhatIsDue = async () => {
    const isDue = (payoutId: string, index: number) =>
      (plan.enqueueAtMs[index] ?? 0) <= sinceChaosMs() && !accepted.has(payoutId);
    const due = payoutIds.filter(isDue);
    if (due.length === 0) return;
    try {
      await producer.enqueueMany(due.map(paymentOf));
      for (const payoutId of due) accepted.add(payoutId);
    } catch {
      // Whether they were accepted is unclear: it asks again.
    }
  };

  const work = async () => {
    if (keys !== undefined) await enqueueUnsigned(redisUrl, PLATFORM_ID);
    while (!isStopped) {
      await enqueueWhatIsDue();
      const stats = await readStats();
      if (stats !== undefined) await operate(stats);
      await delay(CHECK_EVERY_MS);
    }
  };
  const working = work();

  return {
    ...{ operator, producer, payoutIds, readStats },

    /** For what an older Redis has forgotten. */
    askAgain() {
      accepted.clear();
    },

    haveAskedForAll: () => accepted.size === payoutIds.length,

    /** Whether the workers have found each payment that the gateway knows by an order id. */
    async haveFoundAll() {
      const page = await producer.list({ state: 'unknown' }).catch(() => undefined);
      const payments = await options.readPayments();
      const paidTo = new Set(payments.filter(isKnownByOrderId).map(({ addressTo }) => addressTo));
      return page?.payouts.every(({ addressTo }) => !paidTo.has(addressTo)) ?? false;
    },

    async isDecided({ unknown, rejected, held }: AccountStats) {
      const unsigned = await producer.get(UNSIGNED.payoutId);
      return unknown + rejected + held === (unsigned?.state === 'held' ? 1 : 0);
    },

    async stop() {
      isStopped = true;
      await working;
      await producer.close();
    },
  };
}

export async function enqueueUnsigned(redisUrl: string, platformId: number) {
  const stranger = new PayoutProducer({ redisUrl, platformId });
  await stranger.enqueue(UNSIGNED);
  await stranger.close();
}
