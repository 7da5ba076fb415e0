import { html } from './html.js';
import { layout } from './layout.js';
import type { DashboardSite, Site } from './site.js';

export interface Message {
  readonly title: string;
  readonly text: string;
  readonly search?: string;
}

/** A page with one message: what was not found, or what went wrong and what to do. */
export function messagePage(site: Site | DashboardSite, { title, text, search }: Message): string {
  return layout(
    site,
    search === undefined ? { title } : { title, search },
    html`<section class="card message">
      <h1>${title}</h1>
      <p>${text}</p>
      <p><a href="${'base' in site ? `${site.base}/payouts` : `${site.root}/accounts`}">Overview</a></p>
    </section>`,
  );
}
