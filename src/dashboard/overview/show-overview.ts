import type { Request, RequestHandler } from 'express';
import type { Range } from '../charts/time-slots.js';
import type { AccountWatch } from '../pulse/account-watch.js';
import { judgePulse } from '../pulse/judge-pulse.js';
import type { Site } from '../site.js';
import { overviewPage } from './overview-page.js';
import type { OverviewReader } from './overview.js';

interface OverviewOptions {
  readonly watch: AccountWatch;
  readonly reader: OverviewReader;
  readonly explorers: ReadonlyMap<number, string>;
  readonly site: (request: Request) => Site;
}

/** Responds with the first page of an account. */
export function createOverview({ watch, reader, explorers, site }: OverviewOptions): RequestHandler {
  return async (request, response) => {
    const [observation, overview] = await Promise.all([watch.visitSender(), reader.read()]);
    const range: Range = request.query['range'] === 'day' ? 'day' : 'hour';
    response.send(
      overviewPage(site(request), overview, {
        pulse: judgePulse(observation, overview.gateway),
        observation,
        range,
        explorers,
      }),
    );
  };
}
