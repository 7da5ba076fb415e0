import { RedisUnavailableError } from '../../src/base/errors.js';
import type { SenderLedger } from '../../src/ledger/sender-ledger.js';
import { once } from './step-gateway.js';
import { never, type StepProcess } from './step-process.js';
import type { StepWorld } from './step-world.js';

/** One call of a ledger on its way. */
export type LedgerCall = <Reply>(name: string, run: () => Promise<Reply>) => Promise<Reply>;

export interface StepLedgerOptions {
  readonly world: StepWorld;
  readonly process: StepProcess;
  readonly commandTimeoutMs: number;
  /** Called right before and after a command is carried out. */
  readonly account?: { beforeCommand(name: string): void; noteChange(): void };
}

const COMMAND_MS = 0.2;
/** A command that is on its way for longer never reaches Redis: its connection is closed by then. */
const LINGERS_MAX_MS = 20_000;

/** A process's connection to Redis: a command is one step, its reply another. */
export function connectLedger(options: StepLedgerOptions): LedgerCall {
  const { world, process, commandTimeoutMs, account } = options;
  return async <Reply>(label: string, run: () => Promise<Reply>): Promise<Reply> => {
    if (process.isDead) return never();
    return new Promise<Reply>((resolve, reject) => {
      const askedAt = process.now();
      // A call that gets its reply needs no timer.
      const onTrouble = once(() => {
        process.afterOwn(commandTimeoutMs - (process.now() - askedAt), `${label} without a reply`, () => {
          reject(new RedisUnavailableError('no reply in time'));
        });
      });
      world.after(COMMAND_MS, {
        ...{ kind: 'command', label, process, onTrouble, deadline: world.now + LINGERS_MAX_MS },
        run: async () => {
          account?.beforeCommand(label);
          const reply = run();
          account?.noteChange();
          world.after(COMMAND_MS, {
            ...{ kind: 'reply', label, process, isDelivered: true, onTrouble },
            run: () => {
              resolve(reply);
            },
          });
          // An error is the caller's, who may not wait for it any more.
          await reply.catch(() => undefined);
        },
      });
    });
  };
}

const CALLS = [
  ...(['readSender', 'acquireLease', 'renewLease', 'releaseLease', 'readPayout', 'findForgottenSends'] as const),
  ...([
    'beginSend',
    'holdPayout',
    'findSignedBefore',
    'readSpends',
    'revertSend',
    'finishSend',
    'readSending',
  ] as const),
  ...(['markSendsUnknown', 'object'] as const),
];

/** A ledger each of whose calls goes through `call`. */
export function linkLedger(ledger: SenderLedger, call: LedgerCall): SenderLedger {
  const link = (name: (typeof CALLS)[number]): unknown[] => [
    name,
    async (...args: never[]) =>
      call(name, async () => (ledger[name] as (...given: never[]) => Promise<unknown>)(...args)),
  ];
  return Object.fromEntries(CALLS.map(link)) as SenderLedger;
}
