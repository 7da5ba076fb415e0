import type { JournaledOutcome } from '../../../src/journal/journal-line.js';
import type { SendAttempt } from '../../../src/ledger/sender-ledger.js';
import type { HeldLease } from '../../../src/worker/sender/lease-keeper.js';
import { AttemptRecorder } from '../../../src/worker/sender/attempt-recorder.js';
import { LedgerCheck, type OwnAttempts } from '../../../src/worker/sender/ledger-check.js';
import { OutcomeRecorder } from '../../../src/worker/sender/outcome-recorder.js';
import { SendRecovery } from '../../../src/worker/sender/recover-sends.js';
import { takeLease } from '../../ledger/contract/ledger-rig.js';
import { DOUBT_MS, journaled, makeSendRig, type SendRig } from './send-rig.js';

/** The parts of a sender that record and recover attempts, without the one that sends. */
export interface Recorders {
  readonly ownAttempts: OwnAttempts;
  readonly attempts: AttemptRecorder;
  readonly recovery: SendRecovery;
}

export type RecorderRig = SendRig &
  Recorders & {
    /** `p` is being sent, and the journal knows what came of it. */
    sending(outcome?: JournaledOutcome): Promise<SendAttempt>;
  };

export async function makeRecorderRig(): Promise<RecorderRig> {
  const rig = await makeSendRig();
  const sending: RecorderRig['sending'] = async (outcome) => {
    const attempt = await rig.begin('p');
    await rig.journal.append(journaled(attempt));
    if (outcome !== undefined) rig.journal.noteOutcome(attempt, outcome, 0);
    return attempt;
  };
  return { ...rig, ...makeRecorders(rig), sending };
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
  return makeRecorders(rig, { ...rig.heldLease, lease: await takeLease(rig.ledger, 'two') });
}
