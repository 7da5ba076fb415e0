import type { Request } from 'express';
import { html, type Html } from './html.js';
import { utcTime } from './pieces.js';

interface PageOptions {
  readonly title: string;
  readonly search?: string;
  /** The navigation's current page. @defaultValue none */
  readonly current?: 'overview' | 'list' | 'held' | 'batches' | 'activity' | 'policy' | 'audit' | 'diagnostics';
  /** How often the page updates itself, in ms. @defaultValue never */
  readonly refreshMs?: number | undefined;
  /** Whether the page itself shows why the account does not send. @defaultValue false */
  readonly hasPulse?: boolean;
  /** Whether readers select or type in it: without scripts it is not reloaded, which would lose that. @defaultValue false */
  readonly hasForm?: boolean;
}

export const LIST_REFRESH_MS = 3_000;

/** Each refresh of a search reads the ledger again. */
const SEARCH_REFRESH_MS = 15_000;
const FEW_SEARCHED = 500;

/**
 * How often a list with check boxes updates itself: never while it shows commands for what was selected, which must not
 * change while they are read and copied.
 * @param searched - how many payouts were read for the page
 */
export function selectableRefreshMs(isPicked: boolean, searched: number): number | undefined {
  if (isPicked) return undefined;
  return searched > FEW_SEARCHED ? SEARCH_REFRESH_MS : LIST_REFRESH_MS;
}

export const PULSE_PAGE = { refreshMs: 1_000, hasPulse: true } as const;

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%234f46e5'/%3E%3Cpath d='M4 8h7M8 5l3 3-3 3' stroke='white' stroke-width='1.8' fill='none'/%3E%3C/svg%3E";

export function layout(
  site: Site | DashboardSite,
  { title, search = '', current, refreshMs, hasPulse = false, hasForm = false }: PageOptions,
  content: Html,
): string {
  const account = 'platformId' in site ? site : undefined;
  const alarm = hasPulse ? undefined : account?.alarm;
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
        ${refreshMs === undefined ? undefined : liveScript(site, refreshMs, hasForm)}
      </head>
      <body>
        <a class="unseen" href="#content">Skip to the content</a>
        ${site.environment === undefined ? undefined : environmentBand(site.environment)}
        <header class="top">
          <div class="wrap">
            <a href="${account?.base ?? site.root}${account ? '/overview' : '/accounts'}"><strong>Payouts</strong></a>
            ${accountSwitch(site)} ${account === undefined ? undefined : navigation(account, { search, current })}
          </div>
        </header>
        <div id="alarm">${account !== undefined && alarm !== undefined ? alarmView(account, alarm) : undefined}</div>
        <p id="stale" class="stale-notice" role="alert" hidden></p>
        <main
          class="wrap"
          id="content"
          tabindex="-1"
          ${refreshMs !== undefined && html`data-live="${refreshMs}"`}
          ${hasPulse && html`data-pulse`}
        >
          ${asOf(site, refreshMs, hasForm)} ${content}
        </main>
        <footer class="wrap foot">
          ${account?.where === undefined ? undefined : html`<bdi>${account.where}</bdi> · `}${site.environment !== undefined && html`environment <bdi>${site.environment}</bdi> · `}Times
          are in
          <span data-zone>UTC</span>. <button type="button" data-times></button>
        </footer>
      </body>
    </html>`;
  return page.text;
}

/** Says of each page how old it is: at night nobody should trust a page that was opened in the evening. */
function asOf({ now }: DashboardSite, refreshMs: number | undefined, hasForm: boolean): Html {
  const time = utcTime(new Date(now).toISOString());
  return refreshMs === undefined
    ? html`<p class="as-of">as of ${time} · <a href="">Reload</a></p>`
    : html`<p class="as-of">
        live · as of ${time}${hasForm && html`<noscript> · not live without scripts: <a href="">Reload</a></noscript>`}
      </p>`;
}

/** Production is red: nobody should try out there what staging is for. */
function environmentBand(environment: string): Html {
  const tone = /^prod/i.test(environment) ? 'bad' : 'warn';
  return html`<p class="environment ${tone}" role="note" aria-label="Environment"><bdi>${environment}</bdi></p>`;
}

function alarmView({ base }: Site, alarm: string): Html {
  return html`<aside class="alarm" aria-label="Alarm"><a href="${base}/overview">${alarm}</a></aside>`;
}

const RELOAD_AT_MOST_EVERY_MS = 5_000;

/** Without scripts, the browser reloads the page. */
function liveScript({ root }: DashboardSite, refreshMs: number, hasForm: boolean): Html {
  const script = html`<script src="${root}/live.js" defer></script>`;
  if (hasForm) return script;
  const seconds = Math.ceil(Math.max(refreshMs, RELOAD_AT_MOST_EVERY_MS) / 1_000);
  return html`${script} <noscript><meta http-equiv="refresh" content="${seconds}" /></noscript>`;
}

function navigation({ base }: Site, { search, current }: { search: string; current: PageOptions['current'] }): Html {
  const link = (page: PageOptions['current'], path: string, text: string): Html =>
    html`<a href="${base}${path}" ${page === current ? html`aria-current="page"` : undefined}>${text}</a>`;
  return html`<nav aria-label="Account">
      ${link('overview', '/overview', 'Overview')} ${link('list', '/payouts', 'Payouts')}
      ${link('held', '/held', 'Held')} ${link('batches', '/batches', 'Batches')}
      ${link('activity', '/activity', 'Activity')} ${link('policy', '/policy', 'Policy')}
      ${link('audit', '/audit', 'Audit')} ${link('diagnostics', '/diagnostics', 'Diagnostics')}
    </nav>
    <form class="search" action="${base}/payouts" role="search">
      <input
        type="search"
        name="q"
        value="${search}"
        placeholder="payoutId, gatewayId …"
        aria-label="Find by the beginning of a payoutId, by gatewayId, batch, address, amount, day or reference"
        maxlength="256"
        autocomplete="off"
        autocapitalize="none"
        spellcheck="false"
      />
      <button>Find</button>
    </form>`;
}

function accountSwitch(site: Site | DashboardSite): Html {
  const { root, platformIds } = site;
  const shown = 'platformId' in site ? site.platformId : undefined;
  const name = shown === undefined ? 'all accounts' : `account ${shown}`;
  if (platformIds.length === 1) return html`<span class="account">${name}</span>`;
  return html`<details class="account">
    <summary>${name}</summary>
    <ul>
      <li><a href="${root}/accounts" aria-current="${shown === undefined ? 'page' : 'false'}">All accounts</a></li>
      ${platformIds.map(
        (platformId) =>
          html`<li>
            <a
              href="${root}${accountPath(platformIds, platformId)}/overview"
              aria-current="${platformId === shown ? 'page' : 'false'}"
              >Account ${platformId}</a
            >
          </li>`,
      )}
    </ul>
  </details>`;
}

/** What all pages of a dashboard have in common. */
export interface DashboardFrame {
  readonly platformIds: readonly number[];
  /** What the pages are of, such as `staging`, for a band on top. */
  readonly environment?: string | undefined;
}

export interface DashboardSite extends DashboardFrame {
  readonly root: string;
  /** When the page is made: wall clock, ms. */
  readonly now: number;
}

export interface Site extends DashboardSite {
  /** The path before the account's `/payouts` and `/board`; `root` with one account. */
  readonly base: string;
  readonly platformId: number;
  /** Whether operators sign their decisions. */
  readonly isSigned?: boolean;
  /** Account, Redis and gateway: what the page is about. */
  readonly where?: string;
  /** Why nothing is sent, briefly, for the top of every page; undefined if not known to be so. */
  readonly alarm?: string | undefined;
}

export function accountPath(platformIds: readonly number[], platformId: number): string {
  return platformIds.length === 1 ? '' : `/accounts/${platformId}`;
}

export function toSite(
  { baseUrl }: Pick<Request, 'baseUrl'>,
  platformId: number,
  frame: DashboardFrame,
  now: number,
): Site {
  const path = accountPath(frame.platformIds, platformId);
  return { ...frame, root: baseUrl.slice(0, baseUrl.length - path.length), base: baseUrl, platformId, now };
}
