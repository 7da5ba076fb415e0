import { readFileSync } from 'node:fs';
import { formatAct, type Act } from '../../../src/control/approvals/act.js';
import { formatApproval } from '../../../src/control/approvals/approval.js';
import type { Approval } from '../../../src/ledger/control-record.js';
import { formatIntent, type Intent } from '../../../src/control/intents/intent.js';
import { formatReceipt, type Receipt } from '../../../src/control/intents/receipt.js';
import type { StatementType } from '../../../src/control/intents/statement.js';
import type { MadeByPhp, MadeByPython } from '../make-vectors/makers.js';

/** A signed text of cases.json. */
export interface StatementCase {
  readonly name: string;
  readonly kind: StatementType;
  /** Version 1 had none. */
  readonly audience?: string;
  readonly platformId: number;
  readonly fields: Readonly<Record<string, string | number>>;
}

export interface Vectors {
  readonly cases: { readonly seed: string; readonly statements: readonly StatementCase[] };
  readonly php: MadeByPhp;
  readonly python: MadeByPython;
}

export function readVectors(): Vectors {
  return JSON.parse(readFileSync(new URL('../vectors.json', import.meta.url), 'utf8')) as Vectors;
}

/** The text that our code makes of a case. */
export function formatCase({ kind, audience, platformId, fields }: StatementCase): string {
  const given: unknown = { audience, platformId, ...fields };
  if (kind === 'intent') return formatIntent(given as Intent);
  if (kind === 'act') return formatAct(platformId, given as Act);
  if (kind === 'approval') return formatApproval(platformId, given as Approval);
  return formatReceipt(platformId, given as Receipt);
}
