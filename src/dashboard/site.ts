import type { Request } from 'express';

/** Where the dashboard is mounted, and which accounts it shows. */
export interface DashboardSite {
  /** The path under which the dashboard is mounted; empty at the top. */
  readonly root: string;
  /** Every account of the dashboard, in the order given. */
  readonly platformIds: readonly number[];
}

/** The pages of one account. */
export interface Site extends DashboardSite {
  /** The path before the account's `/payouts` and `/board`: `root`, where the dashboard shows one account only. */
  readonly base: string;
  readonly platformId: number;
  /** Whether operators sign their decisions. */
  readonly isSigned?: boolean;
  /** Why nothing is sent, in a few words, for the top of every page; undefined where that is not known to be so. */
  readonly alarm?: string | undefined;
}

/** Where the pages of an account are, seen from where the dashboard is mounted. */
export function accountPath(platformIds: readonly number[], platformId: number): string {
  return platformIds.length === 1 ? '' : `/accounts/${platformId}`;
}

/** The site of a request to the pages of an account. */
export function toSite(
  { baseUrl }: Pick<Request, 'baseUrl'>,
  platformId: number,
  platformIds: readonly number[],
): Site {
  const path = accountPath(platformIds, platformId);
  return { root: baseUrl.slice(0, baseUrl.length - path.length), base: baseUrl, platformId, platformIds };
}
