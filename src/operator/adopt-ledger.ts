import { DEFAULT_ACCOUNT_SETTINGS } from '../account-settings.js';
import { ConflictError, InvalidInputError, PayoutError } from '../errors.js';
import type { Actor } from '../ledger/actor.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import {
  carryOutAdoption,
  findKnownJournals,
  isComplete,
  planAdoption,
  UNWITNESSED,
  type AdoptableJournal,
  type Adoption,
  type AdoptionLedger,
  type AdoptionPlan,
} from './adoption.js';
import type { DecisionSigner } from './decision-signer.js';
import { openJournals, readJournals } from './open-journals.js';
import { redisAdoptionLedger } from './redis-adoption-ledger.js';

/** The journals that an adoption reads, and what it gives up. */
export interface AdoptLedgerOptions {
  /** The folder of every send journal of the account, including those of other hosts. */
  readonly journalDirs: readonly string[];
  /** Ids of journals that are lost for good; `unwitnessed` for sends whose journal is unknown. @defaultValue none */
  readonly giveUp?: readonly string[];
  /**
   * How long a written request may be on its way, in ms: the longest `inFlightMaxMs` of any worker.
   * @defaultValue that of `DEFAULT_ACCOUNT_SETTINGS`
   */
  readonly inFlightMaxMs?: number;
  /**
   * Called with the plan before anything is changed. Throw to end the adoption. Not called if there is nothing to
   * adopt.
   */
  readonly review?: (plan: AdoptionPlan) => void | Promise<void>;
}

/** The result of an adoption. */
export interface AdoptLedgerResult {
  readonly plan: AdoptionPlan;
  /** Undefined if journals and ledger agreed. */
  readonly adoption: Adoption | undefined;
}

/** See `PayoutOperator.adoptLedger`. */
export async function adoptLedger(
  { ledger: payouts, clock }: LedgerAccess,
  { journalDirs, giveUp = [], inFlightMaxMs = DEFAULT_ACCOUNT_SETTINGS.inFlightMaxMs, review }: AdoptLedgerOptions,
  actor: Actor,
  signer?: DecisionSigner,
): Promise<AdoptLedgerResult> {
  const { platformId } = payouts.connection;
  const ledger = redisAdoptionLedger(payouts);
  const plan = await planAdoption(ledger, await readAll(journalDirs, platformId), giveUp);
  await checkGivenUp(ledger, plan);
  if (plan.reasons.length === 0) return { plan, adoption: undefined };
  await review?.(plan);
  if (!isComplete(plan)) throw incompleteError(plan);
  const act = await signer?.signAccountAct(payouts.connection, 'adopt', actor);
  const opened = await openJournals(journalDirs, platformId);
  try {
    const at = clock.wallNow();
    const context = { actor, at, inFlightMaxMs, act };
    return { plan, adoption: await carryOutAdoption(ledger, opened.journals, plan, context) };
  } finally {
    await opened.close();
  }
}

async function readAll(dirs: readonly string[], platformId: number): Promise<AdoptableJournal[]> {
  try {
    return await readJournals(dirs, platformId);
  } catch (error) {
    if (error instanceof PayoutError) throw error;
    throw new InvalidInputError([{ field: 'journalDirs', message: (error as Error).message }]);
  }
}

async function checkGivenUp(ledger: AdoptionLedger, { giveUp, peers }: AdoptionPlan): Promise<void> {
  const ids = findKnownJournals(await ledger.readSender(), peers).map(({ journalId }) => journalId);
  const strange = giveUp.find((id) => id !== UNWITNESSED && !ids.includes(id));
  if (strange === undefined) return;
  const message = `must be the id of a journal that the ledger knows (${ids.join(', ') || 'none'}) or ${UNWITNESSED} (got "${strange}")`;
  throw new InvalidInputError([{ field: 'giveUp', message }]);
}

function incompleteError(plan: AdoptionPlan): ConflictError {
  return new ConflictError(
    `Nothing was adopted, and the account stays stopped: ${describeMissing(plan).join('; ')}. Name the journals that know of these sends in journalDirs, or those that are lost for good in giveUp: then every payout that is queued, held or rejected becomes unknown`,
    ['journals'],
  );
}

export function describeMissing({ unread, unwitnessed }: AdoptionPlan): string[] {
  const cutOff = unread.filter(({ readTo }) => readTo !== undefined);
  const notThere = unread.filter(({ readTo }) => readTo === undefined);
  return [
    ...cutOff.map(
      ({ journalId, sends, readTo }) =>
        `journal ${journalId} ends with send number ${readTo}, but had number ${sends}: it is an older copy, or lost its end`,
    ),
    ...notThere.map(
      ({ journalId, host, dir }) =>
        `journal ${journalId} was not read (${dir === '' ? 'its place is not known' : `${dir} on ${host}`})`,
    ),
    ...unwitnessed.map(({ first, last }) =>
      first === last ? `no journal has send number ${first}` : `no journal has the sends number ${first} to ${last}`,
    ),
  ];
}
