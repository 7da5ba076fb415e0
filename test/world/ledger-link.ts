import { ConflictError, RedisUnavailableError } from '../../src/base/errors.js';
import type { Payout } from '../../src/ledger/payout.js';
import type { SenderLedger } from '../../src/ledger/sender-ledger.js';
import type { FaultInjector } from '../proofs/simulation/faults.js';
import { nearBoundary, type Plan } from '../proofs/simulation/plan.js';
import type { Attacker } from '../proofs/simulation/signed/attacker.js';
import { never, once, type WorldProcess } from './world.js';

export type LinkedRedis = Readonly<{
  generation: number;
  refuses: boolean;
  isUp: boolean;
  take(run: () => Promise<void>): unknown;
  before(name: string): void;
  executed(process: WorldProcess, name: string, about: string): void;
}>;

export const ALWAYS_UP: LinkedRedis = {
  ...{ generation: 0, refuses: false, isUp: true },
  take: async (run) => run(),
  before: () => undefined,
  executed: () => undefined,
};

type LedgerLinkOptions = Readonly<{
  process: WorldProcess;
  redis: LinkedRedis;
  plan: Pick<Plan, 'settings' | 'faults'>;
  injector?: FaultInjector | undefined;
  onBegin?: () => void;
  attacker?: Pick<Attacker, 'forge' | 'hasStruck'> | undefined;
}>;

export type LedgerCall = <Reply>(name: string, about: string, run: () => Promise<Reply>) => Promise<Reply>;

/** What the worker asks: the sender's calls, and which payouts wait (in production BullMQ knows that). */
export interface WorkerLedger extends SenderLedger {
  queued(): Promise<readonly string[]>;
}

const CALLS: { readonly [Name in keyof SenderLedger]: (...args: Parameters<SenderLedger[Name]>) => string } = {
  readSender: () => '',
  acquireLease: (owner) => owner,
  renewLease: ({ owner }) => owner,
  releaseLease: ({ owner }) => owner,
  readPayout: (payoutId) => payoutId,
  findForgottenSends: () => '',
  beginSend: ({ payoutId, attempt }) => `${payoutId} ${attempt}`,
  holdPayout: (payoutId, _, { reason }) => `${payoutId} ${reason}`,
  findSignedBefore: () => '',
  readSpends: () => '',
  revertSend: ({ payoutId, attempt }) => `${payoutId} ${attempt}`,
  finishSend: ({ payoutId, attempt }, { kind }) => `${payoutId} ${attempt} ${kind}`,
  readSending: () => '',
  markSendsUnknown: (_, attempts) => attempts.map(({ payoutId }) => payoutId).join(' '),
  object: ({ reason }) => reason,
};

export function linkLedger(ledger: SenderLedger, call: LedgerCall): SenderLedger {
  const link = ([name, about]: [string, unknown]): [string, unknown] => {
    const run = (...args: never[]) =>
      (ledger[name as keyof SenderLedger] as (...given: never[]) => Promise<unknown>)(...args);
    const describe = about as (...args: never[]) => string;
    return [name, async (...args: never[]) => call(name, describe(...args), async () => run(...args))];
  };
  return Object.fromEntries(Object.entries(CALLS).map(link)) as unknown as SenderLedger;
}

const QUIET: ReadonlySet<string> = new Set([
  ...['readSender', 'renewLease', 'queued', 'readPayout', 'findForgottenSends', 'readSending', 'held', 'marked'],
]);

export function isQuiet(name: string): boolean {
  return QUIET.has(name);
}

/** A command that lingers in the network longer than this never reaches Redis: its connection is closed by then. */
const LINGERS_MAX_MS = 20_000;

/** A process's connection to Redis: commands and replies are late or lost, and may overtake each other. */
export function connectLedger({ process, redis, plan, injector, onBegin, attacker }: LedgerLinkOptions): LedgerCall {
  const { world } = process;
  const { settings, faults } = plan;

  return async <Reply>(name: string, about: string, run: () => Promise<Reply>): Promise<Reply> => {
    const isHit = (probability: number) => world.fault(isQuiet(name) ? probability / 10 : probability);
    const delayMs = () =>
      isHit(faults.ledgerSlow)
        ? Math.min(LINGERS_MAX_MS, nearBoundary(world.random, settings))
        : world.random.between(0.1, 1);
    const askedAt = process.now();
    const { generation } = redis;
    if (process.isDead) return never();

    return new Promise((resolve, reject) => {
      const fail = (reason: string) => () => {
        reject(new RedisUnavailableError(reason));
      };
      const watch = once(() => {
        const about = { kind: 'timeout', label: `${name} without a reply` } as const;
        process.afterOwn(settings.commandTimeoutMs - (process.now() - askedAt), fail('no reply in time'), about);
      });
      const step = { label: name, process, onTrouble: watch };

      if (name === 'beginSend') onBegin?.();
      injector?.strike(process, 'asked', name);
      if (process.isDead) return;
      if (redis.refuses) {
        process.after(1, fail('connection refused'));
        return;
      }
      const requestMs = delayMs();
      const replyMs = delayMs();
      const isLost = isHit(faults.ledgerRequestLost);
      const isReplyLost = isHit(faults.ledgerReplyLost);
      if (isLost || isReplyLost || requestMs + replyMs > settings.commandTimeoutMs / 2) watch();
      if (isLost) return;

      const execute = async () => {
        if (!isQuiet(name)) world.note(() => `${process.name} ${name} ${about}`);
        redis.before(name);
        const reply = run();
        await reply.catch((error: unknown) => {
          if (error instanceof ConflictError || attacker?.hasStruck === true) return;
          world.fail(`${name} failed: ${(error as Error).message}`);
        });
        redis.executed(process, name, about);
        const isForged = attacker !== undefined && name === 'readPayout';
        const heard = isForged ? reply.then((payout) => attacker.forge(payout as Payout) as Reply) : reply;
        heard.catch(() => undefined);
        if (isReplyLost) return;
        const deliver = () => {
          // After a stop, Node looks at its timers before it looks at its sockets, or the other way round.
          const isLate = process.now() - askedAt >= settings.commandTimeoutMs;
          if (isLate && world.random.chance(0.5)) fail('no reply in time')();
          else resolve(heard);
        };
        process.after(replyMs, deliver, { ...step, kind: 'reply' });
      };
      const arrive = () => {
        if (redis.generation !== generation || !redis.isUp) watch();
        return redis.generation !== generation || redis.refuses ? undefined : redis.take(execute);
      };
      world.after(requestMs, arrive, { ...step, kind: 'command', deadline: world.now + LINGERS_MAX_MS });
    });
  };
}
