// Preloaded into a worker process by `node --import`: ends it with SIGKILL at the point that CRASH_AT names, so that
// the code under test needs no hooks. CRASH_ON_SEND (default 2) says at which send.
import { setTimeout as delay } from 'node:timers/promises';
import { FileSendJournal } from '../../../dist/journal/file-send-journal.js';
import { RedisSenderLedger } from '../../../dist/ledger/redis-sender-ledger.js';

const point = process.env.CRASH_AT;
const crashOnSend = Number(process.env.CRASH_ON_SEND ?? 2);
let sends = 0;
/** Nobody waits for the journal to have the outcome; by then it has. */
const OUTCOME_ON_DISK_MS = 500;
/** The payout of the latest send; an earlier one's outcome is confirmed now and then, which is no step of this send. */
let sending;

function die() {
  process.kill(process.pid, 'SIGKILL');
  // The signal is delivered before anything else can run.
  return new Promise(() => undefined);
}

function wrap(prototype, method, { before, after }) {
  const original = prototype[method];
  prototype[method] = async function (...args) {
    const [{ payoutId }] = args;
    // A begin that took too long is put back and comes again at once: that is the same send.
    if (method === 'beginSend' && payoutId !== sending) {
      sends += 1;
      sending = payoutId;
    }
    const hit = sends === crashOnSend && payoutId === sending;
    if (hit && point === before) await die();
    if (hit && method === 'finishSend' && point === 'after-outcome') {
      await delay(OUTCOME_ON_DISK_MS);
      await die();
    }
    const result = await original.apply(this, args);
    if (hit && point === after) await die();
    if (hit && method === 'append' && point === 'during-request') setTimeout(die, 100);
    return result;
  };
}

wrap(RedisSenderLedger.prototype, 'beginSend', { before: 'before-begin', after: 'after-begin' });
wrap(FileSendJournal.prototype, 'append', { after: 'after-journal' });
wrap(RedisSenderLedger.prototype, 'finishSend', { before: 'before-finish', after: 'after-finish' });
