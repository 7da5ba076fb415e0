import type { JournaledLedger, JournalEntry, JournalItem, JournalPeer } from '../journal/journal-line.js';
import { wasSent } from '../journal/journal-view.js';
import type { ForgottenSend, SenderLedger } from '../ledger/sender-ledger.js';

export interface JournalItems {
  items(): AsyncIterable<JournalItem>;
}

/** Numbers of sends, both ends included. */
export interface NumberRange {
  readonly first: number;
  readonly last: number;
}

/** What the journals have and the ledger lacks. */
export interface SendSurvey {
  /** How many sends the journals have and the ledger does not. */
  readonly forgotten: number;
  /** @internal */
  readonly firstForgotten: readonly ForgottenSend<JournalEntry>[];
  /**
   * Sends that neither the journals nor the ledger have. Includes sends that an adoption gave up and the ledger has
   * forgotten.
   */
  readonly unwitnessed: readonly NumberRange[];
  /** Journals that the journals read name. */
  readonly peers: readonly JournalPeer[];
}

const SHOWN_SENDS = 20;
const STEP = 250;

/**
 * Finds the sends that a ledger forgot, and gaps between them.
 *
 * Each send names the one before it, so the forgotten ones must form a chain back to a send that the ledger knows.
 * Numbers alone prove nothing: a ledger that came back older assigns them again.
 * @param line - the ledger's send counter and token
 * @throws RedisUnavailableError; Error if a journal cannot be read
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
        if (isSend(item) && unknown.has(item) && !follows(item, before)) loose.set(item.after.token, item);
        if (isSend(item) || isAdoption(item)) before = item;
        if ('peers' in item) for (const peer of item.peers) peers.set(peer.journalId, peer);
        if (isGivingUp(item)) forgottenAdoptions.push(item);
        // A ledger that knows what follows an adoption has the adoption and its doubt, also for other journals.
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

/** @param loose - forgotten sends whose predecessor is not the entry before them, by the predecessor's token */
async function findUnwitnessed(
  ledger: Pick<SenderLedger, 'findForgottenSends'>,
  journals: readonly JournalItems[],
  { sendCount, last }: { readonly sendCount: number; readonly last: string },
  loose: Map<string, JournalEntry>,
): Promise<NumberRange[]> {
  loose.delete(last);
  // The first send of a ledger follows none.
  loose.delete('');
  if (loose.size === 0) return [];
  const lowest = new Map([...loose.keys()].map((key) => [key, sendCount]));
  const siblings: JournalEntry[] = [];
  for (const journal of journals) {
    for await (const item of journal.items()) {
      if (!isSend(item) && !isAdoption(item)) continue;
      loose.delete(item.token);
      for (const [key, { after }] of loose) {
        if (item.sends < after.sends) lowest.set(key, Math.max(lowest.get(key) ?? 0, item.sends));
      }
      if (isSend(item) && loose.has(item.after.token)) siblings.push(item);
    }
  }
  // If the ledger knows a send that follows the predecessor, it has the predecessor too.
  const forgotten = new Set((await ledger.findForgottenSends(siblings)).map(({ send }) => send));
  for (const sibling of siblings) if (!forgotten.has(sibling)) loose.delete(sibling.after.token);
  return [...loose].map(([key, { after }]) => ({
    first: Math.min((lowest.get(key) ?? 0) + 1, after.sends),
    last: after.sends,
  }));
}

/** A journal in steps, one question to the ledger each. */
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

function follows({ after }: JournalEntry, before: JournalEntry | JournaledLedger | undefined): boolean {
  return before === undefined ? after.sends === 0 : after.token === before.token;
}
