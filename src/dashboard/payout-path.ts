/**
 * Where a payout's page is, seen from where the dashboard is mounted. A payoutId may hold a slash. Browsers take a
 * path that is only dots, however it is escaped, for a step up, so such a payoutId goes into the query.
 */
export function payoutPath(payoutId: string): string {
  const encoded = encodeURIComponent(payoutId);
  return /^\.{1,2}$/.test(payoutId) ? `/payouts?payoutId=${encoded}` : `/payouts/${encoded}`;
}
