import type { RejectionNote } from '../../journal/journal-line.js';
import type { SignedApproval } from '../../ledger/control-record.js';
import { type Hold, toLine } from '../../ledger/payout.js';
import { StatementError, tryFormat } from '../intents/statement.js';
import { checkSignature, type SignatureFault } from '../intents/verify-signature.js';
import type { KeyFinder } from '../keys/keyring.js';
import { formatApproval, hashApproval } from './approval.js';

/** A rejection that counts. `person` is undefined if the keyring here lacks the key, which another host's may have. */
export interface Rejection extends Omit<RejectionNote, 'person'> {
  readonly person: string | undefined;
  /** Undefined if only a journal has it. */
  readonly approval?: SignedApproval | undefined;
}

interface RejectionCount {
  readonly standing: readonly Rejection[];
  readonly takenBack: readonly Rejection[];
  /** Who validly takes back a rejection, by the signature of the statement. */
  readonly takers: ReadonlyMap<string, string>;
  readonly refused: ReadonlyMap<string, string>;
}

interface RejectedPayout {
  readonly platformId: number;
  readonly payoutId: string;
  readonly approvals: readonly SignedApproval[];
}

/**
 * Counts rejections: of the payoutId, whatever intent is signed under it, without an end. Only the person who rejected
 * takes a rejection back, with a statement that names it, so no older statement does. Neither the signer's clock nor a
 * later revocation of the key undoes a rejection: both could let a payment pass that a person stopped.
 * @param journaled - rejections that the journal has as standing
 */
export function countRejections(
  { platformId, payoutId, approvals }: RejectedPayout,
  keyring: KeyFinder,
  journaled: readonly RejectionNote[] = [],
): RejectionCount {
  const refused = new Map<string, string>();
  const found = new Map<string, Rejection>(journaled.map((note) => [note.rejection, { ...note, person: note.person }]));
  for (const approval of approvals) {
    if (approval.decision !== 'reject') continue;
    const person = verify({ platformId, payoutId }, approval, keepRevoked(keyring));
    if (typeof person === 'object' && person.fault !== 'unknown_key') refused.set(approval.signature, person.message);
    else {
      const rejection = hashApproval(platformId, approval);
      const known = found.get(rejection)?.person ?? (typeof person === 'string' ? person : undefined);
      found.set(rejection, { payoutId, rejection, by: approval.by, person: known, approval });
    }
  }
  const takers = new Map<string, string>();
  const ended = new Set<string>();
  for (const approval of approvals) {
    if (approval.decision !== 'unreject') continue;
    const person = verify({ platformId, payoutId }, approval, keyring);
    const given = found.get(approval.intent);
    if (typeof person === 'object') refused.set(approval.signature, person.message);
    else if (given?.person !== undefined && given.person !== person) {
      refused.set(approval.signature, `${given.person} rejected the payout, who alone can take that back`);
    } else {
      takers.set(approval.signature, person);
      // A worker without a keyring journaled the name of the key alone.
      if (given !== undefined && (given.person === person || given.by === approval.by)) ended.add(approval.intent);
    }
  }
  const all = [...found.values()];
  return {
    standing: all.filter(({ rejection }) => !ended.has(rejection)),
    takenBack: all.filter(({ rejection }) => ended.has(rejection)),
    takers,
    refused,
  };
}

/** It holds in every mode: without a keyring here, Redis is believed in this too. */
export function holdRejected({
  person,
  by,
  reason,
}: {
  person?: string | undefined;
  by: string;
  reason: string;
}): Hold {
  const who = person === undefined ? `The key ${by}` : person === by ? by : `${person} (key ${by})`;
  const why = reason === '' ? '' : `: ${toLine(reason).slice(0, 150)}`;
  const message = `${who} rejected it${why}. It is not sent until that person takes it back (\`payouts unreject\`); \`payouts cancel\` ends it.`;
  return { kind: 'rejection', reason: 'rejected', message, isTampering: false };
}

type Verdict = string | { readonly fault: SignatureFault['fault'] | 'other'; readonly message: string };

/** @returns the person who signed */
function verify(
  { platformId, payoutId }: Pick<RejectedPayout, 'platformId' | 'payoutId'>,
  approval: SignedApproval,
  keyring: KeyFinder,
): Verdict {
  const text = tryFormat(() => formatApproval(platformId, approval));
  if (text instanceof StatementError) return { fault: 'other', message: text.message };
  if (approval.payoutId !== payoutId) return { fault: 'other', message: 'it is about another payout' };
  const { by: key, ...statement } = approval;
  const signer = checkSignature(text, { key, ...statement }, 'approver', keyring);
  return 'fault' in signer ? signer : signer.key.person;
}

function keepRevoked(keyring: KeyFinder): KeyFinder {
  return {
    audience: keyring.audience,
    find: (name) => {
      const key = keyring.find(name);
      return key && { ...key, revoked: false };
    },
  };
}
