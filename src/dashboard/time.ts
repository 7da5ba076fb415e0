import { formatDuration, formatTimeUtc } from '../format.js';
import { html, type Html } from './html.js';

/** A time in UTC. The script adds the reader's local time, and can show that instead. */
export function utcTime(iso: string): Html {
  return html`<time class="utc" datetime="${iso}">${formatTimeUtc(iso)}</time>`;
}

/** As {@link utcTime}, of what should be a time: somebody may have put any text in its place. */
export function storedTime(text: string): Html {
  return Number.isNaN(Date.parse(text)) ? html`<bdi>${text}</bdi>` : utcTime(text);
}

/** How long ago, or in how long, with the exact time as a tooltip. */
export function relativeTime(iso: string, wallNow: number): Html {
  const ms = wallNow - Date.parse(iso);
  const text = ms < 0 ? `in ${formatDuration(-ms)}` : formatDuration(ms);
  return html`<time datetime="${iso}" title="${formatTimeUtc(iso)}">${text}</time>`;
}
