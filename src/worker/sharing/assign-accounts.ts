export interface Member {
  /** Unique for every start of a process. */
  readonly id: string;
  readonly accounts: ReadonlySet<number>;
  /** Accounts that it cannot send for now. */
  readonly unfit: ReadonlySet<number>;
  /** Accounts that it works for. */
  readonly claims: ReadonlySet<number>;
  /** Accounts whose lease it holds. */
  readonly held: ReadonlySet<number>;
}

interface Share {
  readonly member: Member;
  readonly accounts: Set<number>;
}

/** A move cannot reduce a difference of one. */
const UNEVEN_FROM = 2;

/**
 * Assigns each account to exactly one process that is fit for it. If none is fit, one that has the account gets it, so
 * that the trouble is reported. Members with the same accounts get equal numbers, give or take one.
 *
 * An account moves only if its process is gone or has at least two accounts more than another. So the end of one of n
 * processes moves only its part, and a new one takes an n-th. All processes with the same view reach the same result. A
 * wrong view makes two processes compete, or none, for a moment; the lease alone decides who sends.
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

/** Among processes that work for an account, the lease holder keeps it. @returns whether any works for it */
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

/** Moves one account to a process with fewer. @returns false if the shares are even */
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

/** The order in which accounts move. Thousands may move at once, so each order is made once. */
class MovingOrder {
  readonly #candidates: Candidates;
  /** By giver and taker. The last of a list moves first. */
  readonly #lists = new Map<Share, Map<Share, number[]>>();

  constructor(candidates: Candidates) {
    this.#candidates = candidates;
  }

  next(from: Share, to: Share): number | undefined {
    const lists = this.#lists.get(from) ?? new Map<Share, number[]>();
    this.#lists.set(from, lists);
    const list = lists.get(to) ?? this.#sort(from, to);
    lists.set(to, list);
    // The account may have moved elsewhere.
    while (list.length > 0 && !from.accounts.has(list.at(-1) ?? NaN)) list.pop();
    return list.at(-1);
  }

  /** A process may pass on what it got. */
  noteGain(share: Share): void {
    this.#lists.delete(share);
  }

  /** Accounts without a lease move first: no send is interrupted. */
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

/** Rendezvous hashing: each account ranks the members in its own order. */
function preferred(platformId: number, shares: readonly Share[]): Share | undefined {
  return highest(
    shares,
    ({ member }) => score(member.id, platformId),
    ({ member }) => member.id,
  );
}

/** @param order - breaks ties, so that all processes choose alike */
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

/** FNV-1a, mixed once more: its last characters alone barely reach the high bits. */
function score(memberId: string, platformId: number): number {
  let hash = 0x81_1c_9d_c5;
  for (const character of `${memberId} ${platformId}`) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01_00_01_93);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
