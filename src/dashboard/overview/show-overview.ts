import type { Request, Response } from 'express';
import type { Range } from '../charts/time-slots.js';
import type { AccountWatch } from '../pulse/account-watch.js';
import { judgePulse } from '../pulse/judge-pulse.js';
import type { Site } from '../site.js';
import { overviewPage } from './overview-page.js';
import type { OverviewReader } from './overview.js';

/** Responds with the first page of an account. */
export type ShowOverview = (request: Request, response: Response) => Promise<void>;

interface OverviewOptions {
  readonly watch: AccountWatch;
  readonly reader: OverviewReader;
  readonly site: (request: Request) => Site;
}

export function createOverview({ watch, reader, site }: OverviewOptions): ShowOverview {
  return async (request, response) => {
    const [observation, overview] = await Promise.all([watch.visitSender(), reader.read()]);
    const range: Range = request.query['range'] === 'day' ? 'day' : 'hour';
    response.send(overviewPage(site(request), overview, { pulse: judgePulse(observation), observation, range }));
  };
}
