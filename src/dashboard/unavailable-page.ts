import { html } from './html.js';
import { layout, PULSE_PAGE } from './layout.js';
import { pulseCard } from './overview/pulse-card.js';
import type { Observation } from './pulse/account-watch.js';
import { judgePulse } from './pulse/judge-pulse.js';
import type { Site } from './site.js';

/** What every page of an account says while Redis does not respond: only what is known. */
export function unavailablePage(site: Site, observation: Observation): string {
  const pulse = judgePulse(observation);
  return layout(
    site,
    { title: pulse.headline, ...PULSE_PAGE },
    html`${pulseCard(pulse, observation, undefined)}
      <p class="card calm">Payouts, figures and lists are in Redis: they are shown again as soon as it responds.</p>`,
  );
}
