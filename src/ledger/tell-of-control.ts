import type { LedgerConnection } from './ledger-connection.js';
import { toLine } from './payout.js';
import type { JournalHead } from './sender-ledger.js';

/** The head of a journal as its worker told it. */
export interface ToldHead extends JournalHead {
  /** Wall clock, ms. */
  readonly at: number;
}

/** Tells where the send journal ends, as an event. @throws RedisUnavailableError */
export async function tellJournalHead({ run, clock }: LedgerConnection, head: JournalHead): Promise<void> {
  const { journalId, hash, sends } = head;
  await run('tell-of-control', ['journal_head', clock.wallNow(), hash, toLine(describeHead(journalId, sends))]);
}

/**
 * Tells which policy a worker judges by, as an event.
 * @param hash - over the policy's file and its lists, hexadecimal
 * @param about - which file, and whose worker
 * @throws RedisUnavailableError
 */
export async function tellPolicyLoaded({ run, clock }: LedgerConnection, hash: string, about: string): Promise<void> {
  await run('tell-of-control', ['policy_loaded', clock.wallNow(), hash, toLine(about)]);
}

function describeHead(journalId: string, sends: number): string {
  return `journal ${journalId}, send number ${sends}`;
}

/** The journal that an event `journal_head` is about, as its reason says; undefined where that is no such reason. */
export function parseHeadReason(reason: string): string | undefined {
  return /^journal ([0-9a-f]{12}), send number \d+$/.exec(reason)?.[1];
}
