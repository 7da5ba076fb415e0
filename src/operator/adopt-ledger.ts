import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { ConflictError, InvalidInputError, NotFoundError, PayoutError } from '../base/errors.js';
import { parseInput } from '../base/fields.js';
import { FileSendJournal } from '../journal/file-send-journal.js';
import { readJournal } from '../journal/journal-reader.js';
import {
  adoptLedger,
  adoptSends,
  countSendablePayouts,
  holdSendablePayouts,
  putBackEnded,
  readBookmark,
} from '../ledger/adopt-ledger.js';
import type { PayoutLedger } from '../ledger/payout-ledger.js';
import type { Actor } from '../ledger/payout.js';
import { RedisSenderLedger } from '../ledger/redis-sender-ledger.js';
import type { LedgerAccess } from '../queues/open-ledger.js';
import {
  type AdoptableJournal,
  type Adoption,
  type AdoptionLedger,
  type AdoptionPlan,
  carryOutAdoption,
  findKnownJournals,
  isComplete,
  planAdoption,
  UNWITNESSED,
} from './adoption.js';
import { type CameBack, readCameBack } from './came-back.js';
import type { DecisionSigner } from './decision-signer.js';

/** The journals that an adoption reads, and what it gives up. */
export interface AdoptLedgerOptions {
  /** The folder of every send journal of the account, including those of other hosts. */
  readonly journalDirs: readonly string[];
  /** Ids of journals that are lost for good; `unwitnessed` for sends whose journal is unknown. @defaultValue none */
  readonly giveUp?: readonly string[];
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
  /** Undefined without an adoption, or if it could not be read. */
  readonly cameBack: CameBack | undefined;
}

const listField = z.array(z.string('must be a string'), 'must be a list');

const optionsSchema = z.strictObject({
  journalDirs: listField,
  giveUp: listField.default([]),
  review: z
    .custom<NonNullable<AdoptLedgerOptions['review']>>((review) => typeof review === 'function', 'must be a function')
    .optional(),
});

/** See `PayoutOperator.adoptLedger`. */
export async function runAdoption(
  { ledger: payouts, clock }: LedgerAccess,
  options: AdoptLedgerOptions,
  actor: Actor,
  signer?: DecisionSigner,
): Promise<AdoptLedgerResult> {
  const { journalDirs, giveUp, review } = parseInput(optionsSchema, options, 'options', '{ journalDirs }');
  const { platformId } = payouts.connection;
  const ledger = redisAdoptionLedger(payouts);
  const plan = await planAdoption(ledger, await readAll(journalDirs, platformId), giveUp);
  await checkGivenUp(ledger, plan);
  if (plan.reasons.length === 0) return { plan, adoption: undefined, cameBack: undefined };
  await review?.(plan);
  if (!isComplete(plan)) throw incompleteError(plan);
  const act = await signer?.signAccountAct(payouts.connection, 'adopt', actor);
  const opened = await openJournals(journalDirs, platformId);
  try {
    const at = clock.wallNow();
    const context = { actor, at, act };
    const adoption = await carryOutAdoption(ledger, opened.journals, plan, context);
    return { plan, adoption, cameBack: await readCameBack(payouts.connection) };
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

export interface OpenJournals {
  readonly journals: readonly AdoptableJournal[];
  close(): Promise<void>;
}

/**
 * Only reads.
 * @throws NotFoundError if a folder has no journal of the account; UnsupportedFormatError; Error if one cannot be read
 */
export async function readJournals(dirs: readonly string[], platformId: number): Promise<AdoptableJournal[]> {
  const journals: AdoptableJournal[] = [];
  for (const dir of dirs) {
    const journal = await readJournal(dir, platformId);
    if (journal === undefined) {
      throw new NotFoundError(
        `No send journal of account ${platformId} in ${resolve(dir)}. Name the folder of each journal, as SEND_JOURNAL_DIR names it to the worker`,
      );
    }
    const refuse = async (): Promise<void> => Promise.reject(new Error('This journal was opened for reading'));
    journals.push(toAdoptable(journal, dir, { bind: refuse, notePeers: refuse }));
  }
  return journals;
}

/**
 * To bind the journals to an adopted ledger.
 * @throws UnsupportedFormatError; Error if one cannot be read or written
 */
export async function openJournals(dirs: readonly string[], platformId: number): Promise<OpenJournals> {
  const opened: FileSendJournal[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(async (journal) => journal.close()));
  };
  const journals: AdoptableJournal[] = [];
  try {
    for (const dir of dirs) {
      const journal = await FileSendJournal.open({ dir, platformId });
      opened.push(journal);
      const bind: AdoptableJournal['bind'] = async (ledger) => journal.bind(ledger);
      const notePeers: AdoptableJournal['notePeers'] = async (peers) => journal.notePeers(peers);
      journals.push(toAdoptable(journal, dir, { bind, notePeers }));
    }
    return { journals, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function toAdoptable(
  journal: Pick<FileSendJournal, 'journalId' | 'ledger' | 'acts' | 'peers' | 'lastSends' | 'items'> &
    Pick<AdoptableJournal, 'knownReplicas'>,
  dir: string,
  writes: Pick<AdoptableJournal, 'bind' | 'notePeers'>,
): AdoptableJournal {
  return {
    journalId: journal.journalId,
    ledger: journal.ledger,
    acts: journal.acts,
    peers: journal.peers,
    knownReplicas: journal.knownReplicas,
    location: { host: hostname(), dir: resolve(dir) },
    lastSends: (limit) => journal.lastSends(limit),
    items: () => journal.items(),
    ...writes,
  };
}

const TOKEN_BYTES = 6;

/**
 * The ledger in Redis, for an adoption. Confirming the last write confirms all before it: a failover that lost them
 * would also lose the objections.
 */
export function redisAdoptionLedger(payouts: PayoutLedger): AdoptionLedger {
  const { connection } = payouts;
  const sender = new RedisSenderLedger(connection, 'reply');
  return {
    readSender: async () => sender.readSender(),
    findForgottenSends: async (sends) => sender.findForgottenSends(sends),
    object: async (objection) => sender.object(objection),
    adoptSends: async (sends, actor) => adoptSends(connection, sends, actor),
    putBackEnded: async (ended, actor) => putBackEnded(connection, ended, actor),
    countSendable: async () => countSendablePayouts(connection),
    holdSendable: async (actor, inFlightMs) => holdSendablePayouts(connection, actor, inFlightMs),
    readBookmark: async () => readBookmark(connection),
    adoptLedger: async (highest, journals, actor, bookmarks, act, inFlightMs) => {
      const own = { token: randomBytes(TOKEN_BYTES).toString('base64url'), inFlightMs };
      return payouts.confirmed(async () => adoptLedger(connection, highest, own, journals, actor, bookmarks, act));
    },
  };
}
