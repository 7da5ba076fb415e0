import { RedisUnavailableError } from '../../../src/base/errors.js';
import type { WorkerLedger } from '../simulation/ledger-link.js';
import type { ExploredAccount } from './explored-account.js';
import { never, type ExploredProcess } from './explored-process.js';
import type { ExploredWorld } from './explored-world.js';

export interface ExploredLedgerOptions {
  readonly world: ExploredWorld;
  readonly process: ExploredProcess;
  readonly account: ExploredAccount;
  readonly commandTimeoutMs: number;
}

const COMMAND_MS = 0.2;
/** A command that is on its way for longer never reaches Redis: its connection is closed by then. */
const LINGERS_MAX_MS = 20_000;

/** A process's connection to Redis: a command is one step, its reply another. */
export function linkLedger({ world, process, account, commandTimeoutMs }: ExploredLedgerOptions): WorkerLedger {
  const { ledger } = account;
  const call = async <Reply>(name: string, run: () => Promise<Reply>): Promise<Reply> => {
    if (process.isDead) return never();
    return new Promise<Reply>((resolve, reject) => {
      const askedAt = process.now();
      let isWatched = false;
      // A call that gets its reply needs no timer.
      const onTrouble = (): void => {
        if (isWatched) return;
        isWatched = true;
        process.afterOwn(commandTimeoutMs - (process.now() - askedAt), `${name} without a reply`, () => {
          reject(new RedisUnavailableError('no reply in time'));
        });
      };
      world.after(COMMAND_MS, {
        ...{ kind: 'command', label: name, process, onTrouble },
        deadline: world.now + LINGERS_MAX_MS,
        run: () => {
          account.beforeCommand(name);
          const reply = run();
          account.noteChange();
          world.after(COMMAND_MS, {
            ...{ kind: 'reply', label: name, process, isDelivered: true, onTrouble },
            run: () => {
              resolve(reply);
            },
          });
        },
      });
    });
  };
  return {
    readSender: async () => call('readSender', async () => ledger.readSender()),
    acquireLease: async (...args) => call('acquireLease', async () => ledger.acquireLease(...args)),
    renewLease: async (lease) => call('renewLease', async () => ledger.renewLease(lease)),
    releaseLease: async (lease) => call('releaseLease', async () => ledger.releaseLease(lease)),
    readPayout: async (payoutId) => call('readPayout', async () => ledger.readPayout(payoutId)),
    findForgottenSends: async (sends) => call('findForgottenSends', async () => ledger.findForgottenSends(sends)),
    beginSend: async (begin) => call('beginSend', async () => ledger.beginSend(begin)),
    holdPayout: async (...args) => call('holdPayout', async () => ledger.holdPayout(...args)),
    findSignedBefore: async (time) => call('findSignedBefore', async () => ledger.findSignedBefore(time)),
    readSpends: async () => call('readSpends', async () => ledger.readSpends()),
    revertSend: async (...args) => call('revertSend', async () => ledger.revertSend(...args)),
    finishSend: async (...args) => call('finishSend', async () => ledger.finishSend(...args)),
    readSending: async () => call('readSending', async () => ledger.readSending()),
    markSendsUnknown: async (...args) => call('markSendsUnknown', async () => ledger.markSendsUnknown(...args)),
    object: async (objection) => call('object', async () => ledger.object(objection)),
    // BullMQ knows it without asking the ledger.
    queued: async () => {
      if (process.isDead) return never();
      return Promise.resolve(ledger.idsIn('queued'));
    },
  };
}
