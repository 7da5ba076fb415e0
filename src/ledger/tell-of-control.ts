import type { LedgerConnection } from './ledger-connection.js';
import { toLine } from './payout.js';
import type { JournalHead } from './sender-ledger.js';

export interface ToldHead extends JournalHead {
  /** Wall clock, ms. */
  readonly at: number;
}

export async function tellJournalHead({ run, clock }: LedgerConnection, head: JournalHead): Promise<void> {
  const { journalId, hash, sends } = head;
  await run('tell-of-control', ['journal_head', clock.wallNow(), hash, toLine(describeHead(journalId, sends))]);
}

/**
 * @param hash - over the policy's file and its lists, hexadecimal
 * @param about - which file, and whose worker
 */
export async function tellPolicyLoaded({ run, clock }: LedgerConnection, hash: string, about: string): Promise<void> {
  await run('tell-of-control', ['policy_loaded', clock.wallNow(), hash, toLine(about)]);
}

function describeHead(journalId: string, sends: number): string {
  return `journal ${journalId}, send number ${sends}`;
}

/** Undefined if the reason has another form. */
export function parseHeadReason(reason: string): string | undefined {
  return /^journal ([0-9a-f]{12}), send number \d+$/.exec(reason)?.[1];
}
