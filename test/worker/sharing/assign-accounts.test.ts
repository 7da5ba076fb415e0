import { describe, expect, it } from '@jest/globals';
import { assignAccounts, type Member } from '../../../src/worker/sharing/assign-accounts.js';
import { Random } from '../../doubles/random.js';

const NONE: ReadonlySet<number> = new Set();
const range = (count: number, from = 1): number[] => Array.from({ length: count }, (_, index) => from + index);

function aMember(id: string, accounts: readonly number[], more: Partial<Member> = {}): Member {
  return { id, accounts: new Set(accounts), unfit: NONE, claims: NONE, held: NONE, ...more };
}

/** The members once each has taken what it was given, with the leases of that. */
function settled(members: readonly Member[]): Member[] {
  const owners = assignAccounts(members);
  return members.map((member) => {
    const own = new Set([...owners].filter(([, owner]) => owner === member.id).map(([platformId]) => platformId));
    return { ...member, claims: own, held: own };
  });
}

const loads = (owners: ReadonlyMap<number, string>, members: readonly Member[]): number[] =>
  members.map(({ id }) => [...owners.values()].filter((owner) => owner === id).length);

function countMoved(before: ReadonlyMap<number, string>, after: ReadonlyMap<number, string>): number {
  return [...before].filter(([platformId, owner]) => after.get(platformId) !== owner).length;
}

describe('accounts that all members have', () => {
  it('all belong to a member that is alone', () => {
    expect(assignAccounts([aMember('a', range(3))])).toEqual(new Map(range(3).map((id) => [id, 'a'])));
    expect(assignAccounts([])).toEqual(new Map());
  });

  it.each([2, 3, 16])('move only as they must where one of %i members comes or goes', (count) => {
    const accounts = range(500);
    const members = settled(range(count).map((index) => aMember(`host:${index}:x`, accounts)));
    const before = assignAccounts(members);
    const without = assignAccounts(members.slice(1));
    expect(countMoved(before, without)).toBe(loads(before, members)[0]);
    const more = assignAccounts([...members, aMember('host:new', accounts)]);
    expect(countMoved(before, more)).toBe(Math.floor(500 / (count + 1)));
    for (const owners of [before, without, more]) {
      const all = [...new Set(owners.values())].map((id) => aMember(id, []));
      expect(Math.max(...loads(owners, all)) - Math.min(...loads(owners, all))).toBeLessThanOrEqual(1);
    }
  });

  it('belong to the holder of the lease where two work for them', () => {
    const claims = new Set([1]);
    for (const holder of ['a', 'b']) {
      const members = ['a', 'b'].map((id) => aMember(id, [1], { claims, held: id === holder ? claims : NONE }));
      expect(assignAccounts(members).get(1)).toBe(holder);
    }
  });
});

/** Members with any accounts, claims, leases and troubles, as views of the registry can be. */
function anyMembers(random: Random): Member[] {
  const pick = (from: readonly number[], part: number): Set<number> => new Set(from.filter(() => random.chance(part)));
  const all = range(random.whole(1, 40));
  return range(random.whole(1, 6)).map((index) => {
    const accounts = random.chance(0.5) ? all : [...pick(all, random.next())];
    const claims = pick(accounts, random.next());
    const held = pick([...claims], 0.7);
    return aMember(`m${index}`, accounts, { claims, held, unfit: pick(accounts, random.chance(0.5) ? 0 : 0.3) });
  });
}

it('gives every account one owner that is fit for it, alike on all members, and then leaves it there', () => {
  for (let seed = 1; seed <= 500; seed += 1) {
    const members = anyMembers(new Random(seed));
    const owners = assignAccounts(members);
    const known = new Set(members.flatMap(({ accounts }) => [...accounts]));
    expect([...owners.keys()].sort((one, other) => one - other)).toEqual([...known].sort((one, other) => one - other));
    for (const [platformId, ownerId] of owners) {
      const having = members.filter(({ accounts }) => accounts.has(platformId));
      const fit = having.filter(({ unfit }) => !unfit.has(platformId));
      expect((fit.length > 0 ? fit : having).map(({ id }) => id)).toContain(ownerId);
    }
    expect(assignAccounts(members.toReversed())).toEqual(owners);
    expect(assignAccounts(settled(members))).toEqual(owners);
  }
});
