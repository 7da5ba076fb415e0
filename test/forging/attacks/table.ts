import { describeAttack } from '../support/attack.js';
import { JOBS, LEDGERS, PAUSES } from './accounts.js';
import { ALTERED, NOT_SIGNED } from './altered.js';
import { FORGED, SWAPPED } from './forged.js';
import { REVIVED, STOPPING } from './revived.js';

/** Each attack in words, with what came of it: for the docs. Those of restarts, lost files and replies name theirs themselves. */
export const ATTACK_TABLE: readonly { readonly name: string; readonly what: string }[] = [
  ...[...ALTERED, ...NOT_SIGNED, ...FORGED, SWAPPED, ...REVIVED, ...STOPPING].map(describeAttack),
  ...[...PAUSES, ...LEDGERS, ...JOBS].map(({ name, expect: what }) => ({ name, what })),
];
