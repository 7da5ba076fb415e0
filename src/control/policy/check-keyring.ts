import type { Problem } from '../../errors.js';
import type { Keyring, KeyringKey } from '../keys/keyring.js';
import { findLookAlikes } from '../keys/person.js';
import type { Over, Policy, PolicyRule } from './policy.js';

/** What a policy needs of the keyring. Without it a rule would hold forever, or count unverifiable data. */

type Approve = Extract<Over, { kind: 'approve' }>;

export interface KeyringFindings {
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

/**
 * @param keyring - undefined if signing is not required
 * @param now - wall clock, ms
 */
export function checkKeyring(policy: Policy, keyring: Pick<Keyring, 'keys'> | undefined, now: number): KeyringFindings {
  const problems = [...findConfusable(policy, keyring?.keys ?? [])];
  const warnings = new Set<string>();
  for (const [index, rule] of policy.rules.entries()) {
    if (keyring === undefined) {
      problems.push(...findUnsigned(rule, index));
    } else if (rule.over.kind === 'approve') {
      const found = checkGroup(rule.over, policy, keyring.keys, now);
      if (found.problem !== undefined) {
        problems.push({ field: `rules.${index}.over.approve.quorum`, message: found.problem });
      }
      for (const warning of found.warnings) warnings.add(warning);
    }
  }
  return { problems, warnings: [...warnings] };
}

/** A group's person who looks like another of the keyring makes one member too few, or one too many. */
function* findConfusable({ groups }: Policy, keys: readonly KeyringKey[]): Generator<Problem> {
  const known = keys.map(({ person }) => person);
  for (const [name, persons] of groups) {
    for (const { id, other } of findLookAlikes([...known, ...persons])) {
      const message = `names a person who looks like another: write "${other}" if it is the same, else give one of them another id`;
      yield { field: `groups.${name}`, message: `${message} (got "${id}")` };
    }
  }
}

function* findUnsigned({ cap, over }: PolicyRule, index: number): Generator<Problem> {
  if (cap?.per === 'signer') {
    const message = 'is signer, and without a keyring nobody has to sign: set PAYOUT_KEYS_FILE, or count per address';
    yield { field: `rules.${index}.cap.per`, message: `${message} (got "signer")` };
  }
  if (over.kind === 'approve') {
    const message = 'needs the keyring, with which approvals are verified: set PAYOUT_KEYS_FILE, or say refuse or wait';
    yield { field: `rules.${index}.over.approve`, message: `${message} (got by: "${over.by}")` };
  }
}

function checkGroup(
  { by, quorum }: Approve,
  { groups }: Policy,
  keys: readonly KeyringKey[],
  now: number,
): { readonly problem?: string; readonly warnings: readonly string[] } {
  const persons = [...(groups.get(by) ?? [])];
  const approvers = personsOf('approver', keys, now);
  const able = persons.filter((person) => approvers.has(person));
  const unable = persons.filter((person) => !approvers.has(person)).join(', ');
  if (able.length < quorum) {
    const has = able.length === 0 ? 'nobody' : `only ${able.join(', ')}`;
    const fix = `Add a key of ${unable} (\`payouts keys generate NAME --role approver\`)`;
    return {
      problem: `is ${quorum}, and of the group ${by} ${has} has a valid key of an approver. ${fix}`,
      warnings: [],
    };
  }
  const warnings = unable === '' ? [] : [`of the group ${by} these have no valid key of an approver: ${unable}`];
  const producers = personsOf('producer', keys, now);
  for (const person of able.length === quorum ? able : []) {
    if (!producers.has(person)) continue;
    warnings.push(`what ${person} signs as a producer never has ${quorum} approvals by ${by}: nobody approves his own`);
  }
  return { warnings };
}

function personsOf(role: KeyringKey['role'], keys: readonly KeyringKey[], now: number): Set<string> {
  const valid = keys.filter((key) => key.role === role && !key.revoked && now <= (key.notAfter ?? Infinity));
  return new Set(valid.map(({ person }) => person));
}
