/** A worker process, as all of them see it. */
export interface Member {
  /** Unique for every start of a process. */
  readonly id: string;
  /** The accounts that it is set up for. */
  readonly accounts: ReadonlySet<number>;
  /** Those of them that it cannot send for now. */
  readonly unfit: ReadonlySet<number>;
  /** Those that it works for. */
  readonly claims: ReadonlySet<number>;
  /** Those whose lease it holds. */
  readonly held: ReadonlySet<number>;
}

/** A member, and the accounts that it gets. */
interface Share {
  readonly member: Member;
  readonly accounts: Set<number>;
}

/** A difference of one cannot be made smaller by a move. */
const UNEVEN_FROM = 2;

/**
 * Says which process works for which account: each account belongs to exactly one of those that are fit for it; where
 * none is, to one of those that have it, so that its trouble is told. Members that can serve the same accounts get the same
 * number of them, give or take one.
 *
 * An account stays where it is unless its process is gone or has at least two accounts more than another. So only what
 * has to move moves: when one of n ends, its part; when one is added, an n-th. Every process that sees the same members
 * comes to the same result. The lease alone decides who sends: a view that is wrong for a moment makes two processes
 * compete, or none for a moment, and nothing worse.
 * @returns the owner of each account, by its id
 */
export function assignAccounts(members: readonly Member[]): Map<number, string> {
  const shares = members
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map((member): Share => ({ member, accounts: new Set() }));
  const candidates = findCandidates(shares);
  const platformIds = [...candidates.keys()].sort((one, other) => one - other);
  const orphans = platformIds.filter((platformId) => !keepClaim(platformId, candidates.get(platformId) ?? []));
  for (const platformId of orphans) leastLoaded(platformId, candidates.get(platformId) ?? [])?.accounts.add(platformId);
  const order = new MovingOrder(candidates);
  while (moveOne(shares, order));
  return new Map(shares.flatMap(({ member, accounts }) => [...accounts].map((id) => [id, member.id] as const)));
}

type Candidates = ReadonlyMap<number, readonly Share[]>;

function findCandidates(shares: readonly Share[]): Candidates {
  const all = new Map<number, Share[]>();
  for (const share of shares) {
    for (const platformId of share.member.accounts) {
      const having = all.get(platformId);
      if (having === undefined) all.set(platformId, [share]);
      else having.push(share);
    }
  }
  for (const [platformId, having] of all) {
    const fit = having.filter(({ member }) => !member.unfit.has(platformId));
    if (fit.length > 0) all.set(platformId, fit);
  }
  return all;
}

/** Of several that work for an account, the holder of the lease keeps it. @returns whether one of them works for it */
function keepClaim(platformId: number, candidates: readonly Share[]): boolean {
  const claimants = candidates.filter(({ member }) => member.claims.has(platformId));
  const holders = claimants.filter(({ member }) => member.held.has(platformId));
  const keeper = preferred(platformId, holders.length > 0 ? holders : claimants);
  keeper?.accounts.add(platformId);
  return keeper !== undefined;
}

function leastLoaded(platformId: number, candidates: readonly Share[]): Share | undefined {
  const load = Math.min(...candidates.map(({ accounts }) => accounts.size));
  return preferred(
    platformId,
    candidates.filter(({ accounts }) => accounts.size === load),
  );
}

/** Takes one account from a process that has more to one that has fewer. @returns false where the shares are even */
function moveOne(shares: readonly Share[], order: MovingOrder): boolean {
  const byLoad = shares.toSorted((one, other) => one.accounts.size - other.accounts.size);
  for (const from of byLoad.toReversed()) {
    for (const to of byLoad) {
      if (from.accounts.size - to.accounts.size < UNEVEN_FROM) break;
      const moving = order.next(from, to);
      if (moving === undefined) continue;
      from.accounts.delete(moving);
      to.accounts.add(moving);
      order.noteGain(to);
      return true;
    }
  }
  return false;
}

/** In which order accounts move: thousands may move at once, so each order is made once. */
class MovingOrder {
  readonly #candidates: Candidates;
  /** By the process that gives and the one that takes; the first to move is the last of its list. */
  readonly #lists = new Map<Share, Map<Share, number[]>>();

  constructor(candidates: Candidates) {
    this.#candidates = candidates;
  }

  next(from: Share, to: Share): number | undefined {
    const lists = this.#lists.get(from) ?? new Map<Share, number[]>();
    this.#lists.set(from, lists);
    const list = lists.get(to) ?? this.#sort(from, to);
    lists.set(to, list);
    // It may have moved elsewhere meanwhile.
    while (list.length > 0 && !from.accounts.has(list.at(-1) ?? NaN)) list.pop();
    return list.at(-1);
  }

  /** What a process was given, it may give. */
  noteGain(share: Share): void {
    this.#lists.delete(share);
  }

  /** An account without a lease moves first: nothing is interrupted by that. */
  #sort(from: Share, to: Share): number[] {
    const { held } = from.member;
    return [...from.accounts]
      .filter((platformId) => this.#candidates.get(platformId)?.includes(to))
      .map((platformId) => ({ platformId, isHeld: held.has(platformId), score: score(to.member.id, platformId) }))
      .sort(
        (one, other) =>
          Number(other.isHeld) - Number(one.isHeld) || one.score - other.score || other.platformId - one.platformId,
      )
      .map(({ platformId }) => platformId);
  }
}

/** Rendezvous hashing: each account prefers the members in an order of its own. */
function preferred(platformId: number, shares: readonly Share[]): Share | undefined {
  return highest(
    shares,
    ({ member }) => score(member.id, platformId),
    ({ member }) => member.id,
  );
}

/** @param order - decides between equal scores, so that all processes choose alike */
function highest<Item>(
  items: readonly Item[],
  scoreOf: (item: Item) => number,
  order: (item: Item) => number | string,
): Item | undefined {
  let best: { readonly item: Item; readonly score: number } | undefined;
  for (const item of items) {
    const own = scoreOf(item);
    const isHigher = best === undefined || own > best.score || (own === best.score && order(item) < order(best.item));
    if (isHigher) best = { item, score: own };
  }
  return best?.item;
}

/** The hash FNV-1a, mixed once more: its last characters alone would hardly reach the high bits. */
function score(memberId: string, platformId: number): number {
  let hash = 0x81_1c_9d_c5;
  for (const character of `${memberId} ${platformId}`) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01_00_01_93);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
