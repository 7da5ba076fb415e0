import { Router, type Request } from 'express';
import type { Logger } from '../logger.js';
import { html } from './html.js';
import { layout } from './layout.js';
import { messagePage } from './message-page.js';
import { respondToError } from './respond-to-error.js';
import { accountPath, type DashboardSite } from './site.js';

/** The pages over all accounts of a dashboard that shows several. */
export function createAccountsPages(platformIds: readonly number[], logger: Logger): Router {
  const site = ({ baseUrl }: Request): DashboardSite => ({ root: baseUrl, platformIds });
  const router = Router();
  router.get(['/', '/payouts'], (request, response) => {
    response.redirect(`${request.baseUrl}/accounts`);
  });
  router.get('/accounts', (request, response) => {
    response.send(accountsPage(site(request)));
  });
  router.use((request, response) => {
    response.status(404).send(messagePage(site(request), { title: 'Not found', text: 'Page not found.' }));
  });
  router.use(respondToError(site, logger));
  return router;
}

function accountsPage(site: DashboardSite): string {
  return layout(
    site,
    { title: 'All accounts' },
    html`<div class="heading"><h1>All accounts</h1></div>
      <ul class="card">
        ${site.platformIds.map(
          (platformId) =>
            html`<li>
              <a href="${site.root}${accountPath(site.platformIds, platformId)}/payouts">Account ${platformId}</a>
            </li>`,
        )}
      </ul>`,
  );
}
