import type { Request, RequestHandler } from 'express';

/**
 * Refuses what a page of another site has a browser send. A form cannot send JSON, and no page of the dashboard sends any:
 * this stands before both, for browsers that are told to remember the password.
 */
export const refuseCrossSite: RequestHandler = (request, response, next) => {
  const site = findForeignSite(request);
  if (site === undefined) next();
  else
    response.status(403).json({ code: 'CROSS_SITE', error: `Refused: a page of another site asked for it (${site}).` });
};

/** What in the request says so. */
function findForeignSite({ headers, host }: Request): string | undefined {
  const { origin, 'sec-fetch-site': fetchSite } = headers;
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none') {
    return `Sec-Fetch-Site: ${fetchSite}`;
  }
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host)) return `Origin: ${origin}`;
  return undefined;
}
