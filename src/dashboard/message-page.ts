import { html } from './html.js';
import { layout, type Site } from './layout.js';

export interface Message {
  readonly title: string;
  readonly text: string;
  readonly search?: string;
}

/** A page with one message: what was not found, or what went wrong and what to do. */
export function messagePage(site: Site, { title, text, search }: Message): string {
  return layout(
    site,
    search === undefined ? { title } : { title, search },
    html`<section class="card message">
      <h1>${title}</h1>
      <p>${text}</p>
      <p><a href="${site.base}/payouts">Overview</a></p>
    </section>`,
  );
}
