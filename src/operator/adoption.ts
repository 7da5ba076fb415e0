import type { JournaledLedger, JournalEntry, JournalPeer } from '../journal/journal-line.js';
import { onAnyClock } from '../base/clock.js';
import { UNKNOWN_IN_FLIGHT_MS } from '../base/settings.js';
import { findMismatch } from '../journal/find-mismatch.js';
import { wasSent } from '../journal/journal-view.js';
import { describeJournal, type ReadableJournal } from '../journal/send-journal.js';
import type { Actor } from '../ledger/payout.js';
import type { AdoptedPayout, HighestKnown, RaisedLedger, SendToAdopt } from '../ledger/adopt-ledger.js';
import type {
  EndedPayout,
  JournalLocation,
  KnownJournal,
  Objection,
  SenderLedger,
  SenderView,
} from '../ledger/sender-ledger.js';
import { inSteps, isSend, surveySends, type JournalItems, type SendSurvey } from './survey-sends.js';

/** The ledger as an adoption needs it. It is narrow, so that the simulation's operators run the same code. */
export interface AdoptionLedger extends Pick<SenderLedger, 'readSender' | 'findForgottenSends' | 'object'> {
  adoptSends(sends: readonly SendToAdopt[], actor: Actor): Promise<AdoptedPayout[]>;
  putBackEnded(ended: readonly EndedPayout[], actor: Actor): Promise<AdoptedPayout[]>;
  countSendable(): Promise<number>;
  /** Includes payouts that may be queued again. @returns how many became `unknown` */
  holdSendable(actor: Actor, inFlightMs: number): Promise<number>;
  /** @param inFlightMs - how long a request may still be on its way, for the next sender */
  adoptLedger(
    highest: HighestKnown,
    journals: { readonly read: readonly KnownJournal[]; readonly givenUp: readonly string[] },
    actor: Actor,
    bookmarks: readonly string[],
    act: string | undefined,
    inFlightMs: number,
  ): Promise<RaisedLedger>;
  /** The ledger's last change, which an older ledger lacks; '' if there is none. */
  readBookmark(): Promise<string>;
}

export interface AdoptableJournal extends ReadableJournal, JournalItems {
  readonly location: JournalLocation;
  bind(ledger: JournaledLedger): Promise<void>;
  notePeers(peers: readonly JournalPeer[]): Promise<void>;
}

/** Gives up sends that no journal, known or not, has. */
export const UNWITNESSED = 'unwitnessed';

/** An objection that format 1 stored as a pause, without naming the journal. */
export const UNNAMED = 'unnamed';

/** Times are wall clock, ms. */
interface AdoptionContext {
  readonly actor: Actor;
  readonly at: number;
  readonly act?: string | undefined;
}

/** A journal that may have forgotten sends, and was not read completely. */
export interface UnreadJournal extends KnownJournal {
  /** The last send in the copy that was read; undefined if none was. */
  readonly readTo?: number | undefined;
}

/** What an adoption would do, and what it lacks. Making the plan changes nothing. */
export interface AdoptionPlan extends SendSurvey {
  /** The contradictions; empty if there is nothing to adopt. */
  readonly reasons: readonly string[];
  /** Whether the ledger forgot something, rather than a journal. */
  readonly isOlder: boolean;
  /** Journals that may have forgotten sends, and are neither read completely nor given up. */
  readonly unread: readonly UnreadJournal[];
  /** Whether unidentified sends are given up. Then every queued, held or rejected payout becomes `unknown`. */
  readonly holdsSendable: boolean;
  readonly sendable: number;
  readonly highest: HighestKnown;
  readonly giveUp: readonly string[];
  readonly bookmark: string;
}

/** What an adoption changed. */
export interface Adoption extends RaisedLedger {
  readonly adopted: readonly AdoptedPayout[];
  /** Payouts that people or the application had ended, says a journal, and that are ended again. */
  readonly putBack: readonly AdoptedPayout[];
  /**
   * Queued, held or rejected payouts that became `unknown`, because sends missing from every journal may be among them.
   */
  readonly held: number;
}

/**
 * Compares journals with a ledger that forgot sends, and plans an adoption.
 *
 * Only if the journals have every send that the ledger lost is it known which payouts were sent. A journal that the
 * ledger knows and that was not read may have more.
 * @param giveUp - ids of journals that are lost for good, or {@link UNWITNESSED}
 * @throws RedisUnavailableError; Error if a journal cannot be read
 */
export async function planAdoption(
  ledger: AdoptionLedger,
  journals: readonly AdoptableJournal[],
  giveUp: readonly string[],
): Promise<AdoptionPlan> {
  // Read the bookmark first: the plan then holds for every ledger that still has it.
  const bookmark = await ledger.readBookmark();
  const view = await ledger.readSender();
  const readIds = journals.filter((journal) => isWhole(journal, view)).map(({ journalId }) => journalId);
  const reasons = view.objections.map(({ reason }) => reason);
  // Includes objections of journals that agree by now: an interrupted adoption may have restored only their sends.
  let isOlder = view.objections.some(({ kind, sends }) => kind === 'ledger' || sends > view.sendCount);
  for (const journal of journals) {
    const mismatch = await findMismatch(journal, view, ledger);
    if (mismatch === undefined) continue;
    reasons.push(mismatch.reason);
    isOlder ||= mismatch.kind === 'ledger';
    // This journal objects for the same reason as the unnamed one of format 1.
    if (mismatch.kind === 'ledger') readIds.push(UNNAMED);
  }
  const survey = await surveySends(ledger, journals, view);
  return {
    ...survey,
    reasons: [...new Set(reasons)],
    isOlder,
    unwitnessed: isOlder && !giveUp.includes(UNWITNESSED) ? survey.unwitnessed : [],
    unread: isOlder
      ? findKnownJournals(view, survey.peers)
          .filter(({ journalId }) => ![...readIds, ...giveUp].includes(journalId))
          .map((known) => ({ ...known, readTo: findEnd(journals, known.journalId) }))
      : [],
    holdsSendable: isOlder && giveUp.length > 0,
    sendable: await ledger.countSendable(),
    highest: findHighest(journals, view),
    giveUp,
    bookmark,
  };
}

function findEnd(journals: readonly ReadableJournal[], journalId: string): number | undefined {
  const read = journals.find((journal) => journal.journalId === journalId);
  return read === undefined ? undefined : (read.ledger?.sends ?? 0);
}

/** An older copy of a journal, as from a backup, lacks later sends. */
function isWhole({ journalId, ledger }: ReadableJournal, { objections, journals }: SenderView): boolean {
  const known = [...objections, ...journals].filter((journal) => journal.journalId === journalId);
  return known.every(({ sends }) => sends <= (ledger?.sends ?? 0));
}

export function findKnownJournals(
  { journals, objections }: Pick<SenderView, 'journals' | 'objections'>,
  peers: readonly JournalPeer[] = [],
): KnownJournal[] {
  const known = new Map(journals.map((journal) => [journal.journalId, journal]));
  for (const { journalId, host, dir, sends } of [...objections, ...peers.map((peer) => ({ ...peer, sends: 0 }))]) {
    const noted = known.get(journalId) ?? { journalId, host, dir, sends, token: '', at: 0 };
    known.set(journalId, { ...noted, sends: Math.max(noted.sends, sends) });
  }
  return [...known.values()];
}

function findHighest(
  journals: readonly AdoptableJournal[],
  { objections, journals: known, lease }: SenderView,
): HighestKnown {
  const numbers = [...objections, ...known].map(({ sends }) => sends);
  return {
    epoch: Math.max(lease?.epoch ?? 0, ...journals.map(({ ledger }) => ledger?.epoch ?? 0)),
    sendCount: Math.max(0, ...numbers, ...journals.map(({ ledger }) => ledger?.sends ?? 0)),
    acts: Math.max(0, ...journals.map(({ acts }) => acts)),
  };
}

export function isComplete({ unread, unwitnessed }: AdoptionPlan): boolean {
  return unread.length === 0 && unwitnessed.length === 0;
}

/**
 * Makes ledger and journals agree again, as planned.
 *
 * The order matters. An objection stops the account throughout. All sends are in the ledger before the objections end,
 * and the journals are bound last. After a crash, the account is stopped or the journals agree anyway; running it again
 * finishes the work. A Redis that came back older since the plan may have forgotten payouts in doubt, so it is not
 * adopted.
 * @param plan - one that {@link isComplete}
 * @throws ConflictError if Redis came back older
 * @throws RedisUnavailableError; Error if a journal cannot be read or written
 */
export async function carryOutAdoption(
  ledger: AdoptionLedger,
  journals: readonly AdoptableJournal[],
  plan: AdoptionPlan,
  { actor, at, act }: AdoptionContext,
): Promise<Adoption> {
  const view = await ledger.readSender();
  // What no journal has may have been sent from any host.
  let inFlightMs = plan.holdsSendable ? UNKNOWN_IN_FLIGHT_MS : (view.inFlightMs ?? 0);
  if (plan.isOlder) {
    for (const journal of journals) {
      if (!view.objections.some(({ journalId }) => journalId === journal.journalId)) {
        await ledger.object(toObjection(journal, plan, at));
      }
    }
    if (plan.giveUp.includes(UNWITNESSED)) await ledger.object(toGapObjection(at));
  }
  const reason = `sent, says the send journal, but the ledger forgot it: ${actor.reason}`;
  const adopted: AdoptedPayout[] = [];
  for (const journal of journals) {
    for await (const step of inSteps(journal)) {
      const journaled = step.filter(isSend).filter(wasSent);
      inFlightMs = Math.max(inFlightMs, ...journaled.map((send) => send.inFlightMs));
      const forgotten = await ledger.findForgottenSends(journaled);
      const sends = forgotten.map(({ send }) => toSendToAdopt(send));
      adopted.push(...(await ledger.adoptSends(sends, { by: actor.by, reason })));
    }
  }
  const putBack: AdoptedPayout[] = [];
  for (const journal of journals) {
    for await (const step of inSteps(journal)) {
      const ended = step.flatMap((item) => ('acts' in item ? item.acts.ended : []));
      putBack.push(...(await ledger.putBackEnded(ended, actor)));
    }
  }
  const doubt = `it may have been sent, and no journal has it: ${actor.reason}`;
  const waitMs = onAnyClock(inFlightMs);
  const held = plan.holdsSendable ? await ledger.holdSendable({ by: actor.by, reason: doubt }, waitMs) : 0;
  const bookmarks = [plan.bookmark, await ledger.readBookmark()];
  // The plan is complete, so the unnamed journal of format 1 was read or is given up.
  const givenUp = [...new Set([...plan.giveUp, UNNAMED])];
  const locations = new Map(findKnownJournals(view).map(({ journalId, host, dir }) => [journalId, { host, dir }]));
  const read = journals.map((journal) =>
    describeJournal(journal, locations.get(journal.journalId) ?? journal.location, at),
  );
  const raised = await ledger.adoptLedger(plan.highest, { read, givenUp }, actor, bookmarks, act, inFlightMs);
  const { epoch, sendCount, token } = raised;
  const binding = { ledgerId: view.ledgerId, epoch, sends: sendCount, token, adopted: true } as const;
  for (const journal of journals) {
    await journal.bind({ ...binding, ...(plan.holdsSendable ? { gaveUp: true } : {}) });
    const peers = read.filter(({ journalId }) => journalId !== journal.journalId);
    if (peers.length > 0) await journal.notePeers(peers);
  }
  return { ...raised, adopted, putBack, held };
}

function toSendToAdopt({ outcome, ...send }: JournalEntry): SendToAdopt {
  const inFlightMs = onAnyClock(send.inFlightMs);
  return outcome?.kind === 'accepted' || outcome?.kind === 'rejected'
    ? { ...send, inFlightMs, outcome }
    : { ...send, inFlightMs };
}

function toObjection(journal: AdoptableJournal, { reasons }: AdoptionPlan, at: number): Objection {
  const { journalId, ledger, location } = journal;
  const reason = reasons[0] ?? 'an operator adopts the ledger';
  return { journalId, kind: 'ledger', reason, ...location, sends: ledger?.sends ?? 0, at };
}

/** Once the sends behind a gap are in the ledger, only this objection reports the gap after an interruption. */
function toGapObjection(at: number): Objection {
  const reason = 'It forgot sends that no journal has, and an adoption that gives them up did not end.';
  return { journalId: UNWITNESSED, kind: 'ledger', reason, host: '', dir: '', sends: 0, at };
}
