/** Where a batch's page is, seen from the pages of the account. In the query, since a name may be only dots, or hold a slash. */
export function batchPath(batch: string): string {
  return `/batch?name=${encodeURIComponent(batch)}`;
}
