import { html, type Html } from './html.js';
import { accountPath, type DashboardSite, type Site } from './site.js';

export type { Site } from './site.js';

interface PageOptions {
  readonly title: string;
  /** The text in the search field. */
  readonly search?: string;
  /** Which of the navigation's pages it is. @defaultValue none */
  readonly current?: 'overview' | 'list' | 'activity';
  /** Whether the page keeps itself up to date. @defaultValue false */
  readonly isLive?: boolean;
}

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%234f46e5'/%3E%3Cpath d='M4 8h7M8 5l3 3-3 3' stroke='white' stroke-width='1.8' fill='none'/%3E%3C/svg%3E";

/** A whole page: head, navigation, search, and the given content. */
export function layout(
  site: Site | DashboardSite,
  { title, search = '', current, isLive = false }: PageOptions,
  content: Html,
): string {
  const account = 'platformId' in site ? site : undefined;
  // The live pages say it themselves.
  const alarm = isLive ? undefined : account?.alarm;
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        <title>${alarm && `${alarm} · `}${title} · Payouts${account && ` ${account.platformId}`}</title>
        <link rel="icon" href="${ICON}" />
        <link rel="stylesheet" href="${site.root}/style.css" />
        <script src="${site.root}/page.js" defer></script>
        ${isLive ? liveScript(site) : undefined}
      </head>
      <body>
        <a class="skip" href="#content">Skip to the content</a>
        <header class="top">
          <div class="wrap">
            <a class="brand" href="${account?.base ?? site.root}${account ? '/payouts' : '/accounts'}">Payouts</a>
            ${accountSwitch(site)} ${account === undefined ? undefined : navigation(account, { search, current })}
          </div>
        </header>
        ${alarm && html`<aside class="alarm" aria-label="Alarm"><a href="${account?.base}/payouts">${alarm}</a></aside>`}
        <p id="stale" class="stale-notice" role="alert" hidden></p>
        <main class="wrap" id="content" tabindex="-1" ${isLive ? html`data-live` : undefined}>${content}</main>
        <footer class="wrap foot">
          Times are in <span data-zone>UTC</span>. <button type="button" data-times></button>
        </footer>
      </body>
    </html>`;
  return page.text;
}

/** Without scripts the browser loads the whole page again. */
function liveScript({ root }: DashboardSite): Html {
  return html`<script src="${root}/live.js" defer></script>
    <noscript><meta http-equiv="refresh" content="5" /></noscript>`;
}

function navigation({ base }: Site, { search, current }: { search: string; current: PageOptions['current'] }): Html {
  const link = (page: PageOptions['current'], path: string, text: string): Html =>
    html`<a href="${base}${path}" ${page === current ? html`aria-current="page"` : undefined}>${text}</a>`;
  return html`<nav aria-label="Account">
      ${link('overview', '/payouts', 'Overview')} ${link('list', '/payouts?state=', 'Payouts')}
      ${link('activity', '/activity', 'Activity')}
      <a href="${base}/board/">Queues</a>
    </nav>
    <form class="search" action="${base}/payouts" role="search">
      <input
        type="search"
        name="q"
        value="${search}"
        placeholder="payoutId, txhash, address, amount …"
        aria-label="Find by payoutId, txhash, batch, address, amount, day or reference"
        maxlength="256"
        autocomplete="off"
        autocapitalize="none"
        spellcheck="false"
      />
      <button>Find</button>
    </form>`;
}

/** Which account this page is about; where there are several, a menu of them that needs no script. */
function accountSwitch(site: Site | DashboardSite): Html {
  const { root, platformIds } = site;
  const shown = 'platformId' in site ? site.platformId : undefined;
  const name = shown === undefined ? 'all accounts' : `account ${shown}`;
  if (platformIds.length === 1) return html`<span class="account">${name}</span>`;
  return html`<details class="account switch">
    <summary>${name}</summary>
    <ul>
      <li><a href="${root}/accounts" aria-current="${shown === undefined ? 'page' : 'false'}">All accounts</a></li>
      ${platformIds.map(
        (platformId) =>
          html`<li>
            <a
              href="${root}${accountPath(platformIds, platformId)}/payouts"
              aria-current="${platformId === shown ? 'page' : 'false'}"
              >Account ${platformId}</a
            >
          </li>`,
      )}
    </ul>
  </details>`;
}
