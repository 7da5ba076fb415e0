import { html, type Html } from './html.js';

/** Where the dashboard is mounted, and its account. */
export interface Site {
  /** The path under which the dashboard is mounted; empty at the top. */
  readonly base: string;
  readonly platformId: number;
}

interface PageOptions {
  readonly title: string;
  /** The text in the search field. */
  readonly search?: string;
}

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%234f46e5'/%3E%3Cpath d='M4 8h7M8 5l3 3-3 3' stroke='white' stroke-width='1.8' fill='none'/%3E%3C/svg%3E";

/** A whole page: head, navigation, search, and the given content. */
export function layout({ base, platformId }: Site, { title, search = '' }: PageOptions, content: Html): string {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Payouts ${platformId}</title>
        <link rel="icon" href="${ICON}" />
        <link rel="stylesheet" href="${base}/style.css" />
      </head>
      <body>
        <header class="top">
          <div class="wrap">
            <a class="brand" href="${base}/payouts">Payouts <span>account ${platformId}</span></a>
            <nav>
              <a href="${base}/payouts" aria-current="page">Payouts</a>
              <a href="${base}/board/">Queues</a>
            </nav>
            <form class="search" action="${base}/payouts" role="search">
              <input
                type="search"
                name="q"
                value="${search}"
                placeholder="payoutId or txhash"
                aria-label="payoutId or txhash"
                maxlength="256"
                autocomplete="off"
                autocapitalize="none"
                spellcheck="false"
              />
              <button>Find</button>
            </form>
          </div>
        </header>
        <main class="wrap">${content}</main>
      </body>
    </html>`;
  return page.text;
}
