import { AccountPolicy } from '../../../src/control/worker/account-policy.js';
import type { Clock } from '../../../src/base/clock.js';
import type { WithdrawGateway } from '../../../src/gateway/gateway.js';
import { Pacer, type Pace } from '../../../src/worker/sender/pacer.js';
import type { SendJournal } from '../../../src/journal/send-journal.js';
import type { ResumeAuthority, SendAuthority } from '../../../src/worker/sender/send-authority.js';
import { SignedAuthority, type SignedRuntime } from '../../../src/control/worker/signed-authority.js';
import type { WorkerLedger } from './ledger-link.js';
import { WorldLedger, type WorldLedgerOptions } from '../../world/world-ledger.js';
import type { Settings } from './plan.js';

type PolicyArguments = ConstructorParameters<typeof AccountPolicy>;

/** What a policy is made of. */
export type PolicyPieces = PolicyArguments[0] & {
  readonly signatures: PolicyArguments[1];
  readonly source: PolicyArguments[2];
  readonly publish: PolicyArguments[3];
};

export function openPolicy({ signatures, source, publish, ...runtime }: PolicyPieces): AccountPolicy {
  return new AccountPolicy(runtime, signatures, source, publish);
}

/** What a planted mistake may look at. */
export interface PieceContext {
  readonly clock: Clock;
  readonly pacer: Pacer;
  readonly settings: Settings;
  readonly ledgerOfRun: WorldLedger;
}

/** The pieces that a worker is made of. A planted mistake replaces some of them; the sound ones change nothing. */
export interface Pieces {
  /** @param next - a token that no other attempt has. @param epoch - of the sender's lease */
  readonly makeToken: (next: string, epoch: number) => string;
  readonly makeLedger: (options: WorldLedgerOptions) => WorldLedger;
  readonly makePacer: (clock: Clock, pace: Pace) => Pacer;
  readonly wrapLedger: (ledger: WorkerLedger, context: PieceContext) => WorkerLedger;
  readonly wrapGateway: (gateway: WithdrawGateway, context: PieceContext) => WithdrawGateway;
  readonly wrapJournal: (journal: SendJournal, context: PieceContext) => SendJournal;
  /** In signed mode. */
  readonly makeAuthority: (options: SignedRuntime, context: PieceContext) => SendAuthority & ResumeAuthority;
  /** Where a policy counts. */
  readonly makePolicy: (options: PolicyPieces) => AccountPolicy;
  /** What an operator finds where journals that contradict the ledger are to be read. */
  readonly adoptsWithoutProof: boolean;
  /** In signed mode: an operator states what a request on its way may yet make untrue, when the ledger lets him. */
  readonly signsInDoubt: boolean;
}

export const soundPieces: Pieces = {
  makeToken: (next) => next,
  makeLedger: (options) => new WorldLedger(options),
  makePacer: (clock, pace) => new Pacer(clock, pace),
  wrapLedger: (ledger) => ledger,
  wrapGateway: (gateway) => gateway,
  wrapJournal: (journal) => journal,
  makeAuthority: (options) => new SignedAuthority(options),
  makePolicy: openPolicy,
  adoptsWithoutProof: false,
  signsInDoubt: false,
};
