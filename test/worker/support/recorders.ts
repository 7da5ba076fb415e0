import type { HeldLease } from '../../../src/worker/sender/lease-keeper.js';
import { AttemptRecorder } from '../../../src/worker/sender/attempt-recorder.js';
import { LedgerCheck, type OwnAttempts } from '../../../src/worker/sender/ledger-check.js';
import { OutcomeRecorder } from '../../../src/worker/sender/outcome-recorder.js';
import { SendRecovery } from '../../../src/worker/sender/recover-sends.js';
import { JOURNAL } from '../../ledger/contract/ledger-rig.js';
import { DOUBT_MS, makeSendRig, type SendRig } from './send-rig.js';

/** The parts of a sender that record and recover attempts, without the one that sends. */
export interface Recorders {
  readonly ownAttempts: OwnAttempts;
  readonly attempts: AttemptRecorder;
  readonly recovery: SendRecovery;
}

export type RecorderRig = SendRig & Recorders;

export async function makeRecorderRig(): Promise<RecorderRig> {
  const rig = await makeSendRig();
  return { ...rig, ...makeRecorders(rig) };
}

function makeRecorders(rig: SendRig, heldLease: HeldLease = rig.heldLease): Recorders {
  const { stopGrace, unrecordable } = rig;
  const runtime = { ...rig.runtime, settings: { ...rig.runtime.settings, maxRejectionsInARow: 2 } };
  const check = new LedgerCheck(runtime, heldLease);
  const outcomes = new OutcomeRecorder(runtime, DOUBT_MS, undefined);
  const onUnrecordable = (reason: string | undefined): void => void unrecordable.push(reason);
  const attempts = new AttemptRecorder(runtime, check, outcomes, stopGrace, onUnrecordable);
  const recovery = new SendRecovery(runtime, check, attempts);
  return { ownAttempts: check.ownAttempts, attempts, recovery };
}

/** The lease goes to another process, which knows nothing of what was begun before. */
export async function recordersOfTheNext(rig: SendRig): Promise<Recorders> {
  const epoch = (await rig.ledger.acquireLease('two', await rig.ledger.readSender(), JOURNAL, 0)) ?? 0;
  return makeRecorders(rig, { ...rig.heldLease, lease: { owner: 'two', epoch } });
}
