import { signedApprovalSchema, type SignedApproval } from '../control/approvals/approval.js';

/** What the fields of a record begin with that hold approvals; the name of the key follows. */
const FIELD = 'approval:';

/** An approval as the record has it. The same approval is the same text. */
export function toApprovalField(approval: SignedApproval): string {
  const { audience, payoutId, intent, decision, by, at, expiresAt, signature } = approval;
  return JSON.stringify({ audience, payoutId, intent, decision, by, at, expiresAt, signature });
}

/**
 * The approvals of a record, in the order in which they were signed. Anybody may have put them there: what is no approval, or
 * names another key than its field, is left out, so each key has one at most.
 */
export function parseApprovals(record: Readonly<Record<string, string>>): SignedApproval[] {
  const approvals: SignedApproval[] = [];
  for (const field in record) {
    if (!field.startsWith(FIELD)) continue;
    const parsed = signedApprovalSchema.safeParse(parseJson(record[field] ?? ''));
    if (parsed.success && field === `${FIELD}${parsed.data.by}`) approvals.push(parsed.data);
  }
  return approvals.sort((a, b) => Date.parse(a.at) - Date.parse(b.at) || (a.by < b.by ? -1 : 1));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
