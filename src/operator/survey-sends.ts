import type { JournaledLedger, JournalEntry, SendLine, JournalItem, JournalPeer } from '../journal/journal-line.js';
import { wasSent } from '../journal/journal-view.js';
import type { ForgottenSend, SenderLedger } from '../ledger/sender-ledger.js';

/** A journal as it is on disk: everything that is kept, the oldest first. */
export interface JournalItems {
  items(): AsyncIterable<JournalItem>;
}

/** Numbers of sends, both ends included. */
export interface NumberRange {
  readonly first: number;
  readonly last: number;
}

/** What journals have that a ledger does not know of. */
export interface SendSurvey {
  readonly forgotten: number;
  /** Some of them, to be shown. */
  readonly firstForgotten: readonly ForgottenSend<JournalEntry>[];
  /**
   * Sends of the same line that none of the journals has, and the ledger does not know either; also those that an adoption
   * gave up which the ledger has forgotten.
   */
  readonly unwitnessed: readonly NumberRange[];
  /** Other journals that the journals know of. */
  readonly peers: readonly JournalPeer[];
}

const SHOWN_SENDS = 20;
const STEP = 250;

/**
 * Finds the sends that a ledger forgot, and whether any is missing between them.
 *
 * Each send names the one before it, so the forgotten ones have to hang together: back to a send that the ledger knows.
 * Numbers alone would not tell, since a ledger that came back older gives them out again.
 * @param line - where the ledger's line of sends stands
 * @throws RedisUnavailableError; Error when a journal cannot be read
 */
export async function surveySends(
  ledger: Pick<SenderLedger, 'findForgottenSends'>,
  journals: readonly JournalItems[],
  line: { readonly sendCount: number; readonly last: string },
): Promise<SendSurvey> {
  const firstForgotten: ForgottenSend<JournalEntry>[] = [];
  const loose = new Map<string, JournalEntry>();
  const peers = new Map<string, JournalPeer>();
  const givenUp: JournaledLedger[] = [];
  const remembered = new Set<string>();
  let forgotten = 0;
  for (const journal of journals) {
    let before: JournalEntry | JournaledLedger | undefined;
    let forgottenAdoptions: JournaledLedger[] = [];
    for await (const step of inSteps(journal)) {
      const found = await ledger.findForgottenSends(step.filter(isSend));
      const unknown = new Set(found.map(({ send }) => send));
      for (const item of step) {
        if (isSend(item) && unknown.has(item) && !follows(item, before)) loose.set(keyBefore(item), item);
        if (isSend(item) || isAdoption(item)) before = item;
        if ('peers' in item) for (const peer of item.peers) peers.set(peer.journalId, peer);
        if (isGivingUp(item)) forgottenAdoptions.push(item);
        // A ledger that knows what follows an adoption has the adoption, and the doubt that it left, also for other journals.
        const isKnown = isSend(item) ? !unknown.has(item) : isAdoption(item) && item.token === line.last;
        if (!isKnown) continue;
        for (const { token } of forgottenAdoptions) remembered.add(token);
        forgottenAdoptions = [];
      }
      const sent = found.filter(({ send }) => wasSent(send));
      forgotten += sent.length;
      firstForgotten.push(...sent.slice(0, SHOWN_SENDS - firstForgotten.length));
    }
    givenUp.push(...forgottenAdoptions);
  }
  const unwitnessed = await findUnwitnessed(ledger, journals, line, loose);
  const forgottenGiveUps = givenUp.filter(({ token }) => !remembered.has(token));
  const again = Math.max(0, ...forgottenGiveUps.map(({ sends }) => sends));
  if (again > 0) unwitnessed.push({ first: 1, last: again });
  return { forgotten, firstForgotten, unwitnessed, peers: [...peers.values()] };
}

/** @param loose - forgotten sends whose predecessor is not the entry before it, by the key of that predecessor */
async function findUnwitnessed(
  ledger: Pick<SenderLedger, 'findForgottenSends'>,
  journals: readonly JournalItems[],
  { sendCount, last }: { readonly sendCount: number; readonly last: string },
  loose: Map<string, JournalEntry>,
): Promise<NumberRange[]> {
  if (last !== '') loose.delete(last);
  for (const { after } of [...loose.values()]) {
    if (!isNamed(after) && after.sends <= sendCount) loose.delete(toNumberKey(after.sends));
  }
  if (loose.size === 0) return [];
  const lowest = new Map([...loose.keys()].map((key) => [key, sendCount]));
  const siblings: JournalEntry[] = [];
  for (const journal of journals) {
    for await (const item of journal.items()) {
      if (!isSend(item) && !isAdoption(item)) continue;
      loose.delete(item.token);
      loose.delete(toNumberKey(item.sends));
      for (const [key, { after }] of loose) {
        if (item.sends < after.sends) lowest.set(key, Math.max(lowest.get(key) ?? 0, item.sends));
      }
      if (isSend(item) && loose.has(keyBefore(item))) siblings.push(item);
    }
  }
  // The ledger's own line goes through the predecessor, where it knows a send that follows it.
  const forgotten = new Set((await ledger.findForgottenSends(siblings)).map(({ send }) => send));
  for (const sibling of siblings) if (!forgotten.has(sibling)) loose.delete(keyBefore(sibling));
  return [...loose].map(([key, { after }]) => ({
    first: Math.min((lowest.get(key) ?? 0) + 1, after.sends),
    last: after.sends,
  }));
}

/** A journal in steps, each of which is one question to the ledger. */
export async function* inSteps(journal: JournalItems): AsyncGenerator<JournalItem[]> {
  let step: JournalItem[] = [];
  for await (const item of journal.items()) {
    step.push(item);
    if (step.length < STEP) continue;
    yield step;
    step = [];
  }
  if (step.length > 0) yield step;
}

export function isSend(item: JournalItem): item is JournalEntry {
  return 'payoutId' in item;
}

function isAdoption(item: JournalItem): item is JournaledLedger {
  return 'adopted' in item;
}

function isGivingUp(item: JournalItem): item is JournaledLedger {
  return 'gaveUp' in item;
}

/** Whether a send's predecessor is the entry before it in the same journal. */
function follows({ after }: JournalEntry, before: JournalEntry | JournaledLedger | undefined): boolean {
  if (before === undefined) return after.sends === 0;
  return isNamed(after) ? after.token === before.token : after.sends === before.sends;
}

function keyBefore({ after }: JournalEntry): string {
  return isNamed(after) ? after.token : toNumberKey(after.sends);
}

/** A send of format 1 has no token; neither does the beginning of a ledger. Only its number tells it then. */
function isNamed(after: SendLine['after']): after is { readonly sends: number; readonly token: string } {
  return after.token !== undefined && after.token !== '';
}

function toNumberKey(sends: number): string {
  return `number ${sends}`;
}
