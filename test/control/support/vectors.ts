import { readFileSync } from 'node:fs';
import { formatAct, type Act } from '../../../src/control/act.js';
import { formatIntent, type Intent } from '../../../src/control/intent.js';
import { formatReceipt, type Receipt } from '../../../src/control/receipt.js';
import type { MadeByPhp, MadeByPython } from '../make-vectors/makers.js';

/** A signed text of cases.json. */
export interface StatementCase {
  readonly name: string;
  readonly kind: 'intent' | 'act' | 'receipt';
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
export function formatCase({ kind, platformId, fields }: StatementCase): string {
  if (kind === 'intent') return formatIntent({ platformId, ...fields } as unknown as Intent);
  if (kind === 'act') return formatAct(platformId, fields as unknown as Act);
  return formatReceipt(platformId, fields as unknown as Receipt);
}
