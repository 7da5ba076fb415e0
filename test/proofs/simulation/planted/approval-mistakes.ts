import { formatApproval } from '../../../../src/control/approvals/approval.js';
import type { SignedApproval } from '../../../../src/ledger/control-record.js';
import { signText } from '../../../../src/control/keys/ed25519.js';
import type { Payout } from '../../../../src/ledger/payout.js';
import type { WorkerLedger } from '../../../world/ledger-link.js';
import type { PieceContext } from '../../../world/worker.js';
import { intentHashOf } from '../policed/approvers.js';
import { APPROVERS } from '../policed/rules.js';
import { APPROVER_KEYS, PLATFORM_ID, type ApproverKey } from '../signed/keys.js';
import type { Mistake } from './mistake.js';
import { TEST_AUDIENCE } from '../../../control/support/keys.js';

/** Why an approval does not count. */
type Flaw = 'second key' | 'signer' | 'requester' | 'expired' | 'another intent' | 'not of the group';

/** Each lets a payout leave that too few persons approved. */
export const approvalMistakes: readonly Mistake[] = [
  { name: 'a quorum of keys', pieces: counting('second key') },
  { name: 'own approval counted: of the signer', pieces: counting('signer') },
  { name: 'own approval counted: of who asked for it', pieces: counting('requester') },
  { name: 'expired approvals counted', pieces: counting('expired') },
  { name: 'approvals of another intent counted', pieces: counting('another intent') },
  { name: 'approvals of anyone counted', pieces: counting('not of the group') },
  { name: 'a rejection outvoted', pieces: { wrapLedger: (ledger) => withApprovals(ledger, withoutRejections) } },
];

type Change = (payout: Payout, approvals: readonly SignedApproval[]) => readonly SignedApproval[];

/** A worker that counts what has this flaw: it is shown, in the place of each such approval, one that counts. */
function counting(flaw: Flaw): Mistake['pieces'] {
  return {
    wrapLedger: (ledger, { clock }) => withApprovals(ledger, (payout, all) => repair(payout, all, flaw, clock)),
  };
}

function withApprovals(ledger: WorkerLedger, change: Change): WorkerLedger {
  return {
    ...ledger,
    readPayout: async (payoutId) => {
      const payout = await ledger.readPayout(payoutId);
      if (payout?.approvals === undefined || payout.signed === undefined) return payout;
      return { ...payout, approvals: change(payout, payout.approvals) };
    },
  };
}

function withoutRejections(_: Payout, approvals: readonly SignedApproval[]): readonly SignedApproval[] {
  return approvals.filter(({ decision }) => decision === 'approve');
}

function repair(
  payout: Payout,
  approvals: readonly SignedApproval[],
  flaw: Flaw,
  clock: PieceContext['clock'],
): SignedApproval[] {
  const counted = new Set<string>();
  const flawed: SignedApproval[] = [];
  const sound: SignedApproval[] = [];
  for (const approval of approvals) {
    const flaws = approval.decision === 'approve' ? flawsOf(payout, approval, counted, clock.wallNow()) : [];
    if (flaws.length === 0) counted.add(personOf(approval));
    if (flaws.length === 1 && flaws[0] === flaw) flawed.push(approval);
    else sound.push(approval);
  }
  const spare = sparePersons(payout, counted);
  return [...sound, ...flawed.flatMap((_, index) => signAs(payout, spare[index], clock.wallNow()))];
}

function flawsOf(payout: Payout, approval: SignedApproval, counted: ReadonlySet<string>, now: number): Flaw[] {
  const person = personOf(approval);
  return [
    ...(counted.has(person) ? ['second key' as const] : []),
    ...(person === 'Shop' ? ['signer' as const] : []),
    ...(person === payout.signed?.requestedBy ? ['requester' as const] : []),
    ...(Date.parse(approval.expiresAt) <= now ? ['expired' as const] : []),
    ...(approval.intent === intentHashOf(payout) ? [] : ['another intent' as const]),
    ...(isOfGroup(person) ? [] : ['not of the group' as const]),
  ];
}

function personOf({ by }: SignedApproval): string {
  return APPROVER_KEYS.find(({ name }) => name === by)?.person ?? '';
}

function isOfGroup(person: string): boolean {
  return (APPROVERS as readonly string[]).includes(person);
}

/** A key of each person whose approval would count, and is not there. */
function sparePersons({ signed }: Payout, counted: ReadonlySet<string>): ApproverKey[] {
  const isSpare = (person: string): boolean =>
    isOfGroup(person) && person !== 'Shop' && person !== signed?.requestedBy && !counted.has(person);
  const persons = new Set(APPROVER_KEYS.map(({ person }) => person).filter(isSpare));
  return [...persons].flatMap((person) => APPROVER_KEYS.find((key) => key.person === person) ?? []);
}

function signAs(payout: Payout, key: ApproverKey | undefined, now: number): SignedApproval[] {
  if (key === undefined) return [];
  const times = { at: new Date(now).toISOString(), expiresAt: new Date(now + 3_600_000).toISOString() };
  const about = { audience: TEST_AUDIENCE, payoutId: payout.payoutId };
  const stated = { ...about, intent: intentHashOf(payout), decision: 'approve', by: key.name, ...times } as const;
  return [{ ...stated, signature: signText(formatApproval(PLATFORM_ID, stated), key.private) }];
}
