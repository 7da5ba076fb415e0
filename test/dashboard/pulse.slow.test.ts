import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { systemClock } from '../../src/base/clock.js';
import { PayoutOperator } from '../../src/operator/payout-operator.js';
import { until } from '../support/until.js';
import { startOwnRedis, type OwnRedis } from '../worker/support/own-redis.js';
import { openWorld, untilSent, type PayoutWorld } from '../worker/support/payout-world.js';
import type { WorkerProcess } from '../worker/support/worker-process.js';
import { launchChromium } from './support/launch-chromium.js';
import { openDashboard, type RunningDashboard } from './support/running-dashboard.js';
import { startTcpProxy, type TcpProxy } from './support/tcp-proxy.js';

jest.setTimeout(300_000);

/** Within this time the pulse turns red. */
const RED_WITHIN_MS = 5_000;

/** How far the page is scrolled; a reset would be 0. */
const SCROLLED_TO_PX = 300;

const SCREENS = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
];

let redis: OwnRedis;
let world: PayoutWorld;
let operator: PayoutOperator;
let gateway: TcpProxy;
let worker: WorkerProcess;
let dashboard: RunningDashboard;
let browser: Browser;
let pages: Page[];

/** A breaker that does not open: what is tested is the pulse, not the pause. */
function startWorker(): WorkerProcess {
  const environment = { MAX_UNKNOWNS_IN_A_ROW: '1000' };
  return world.startWorker({ baseUrl: `http://127.0.0.1:${gateway.port}`, environment });
}

beforeAll(async () => {
  redis = await startOwnRedis();
  world = await openWorld({ redis });
  operator = new PayoutOperator({ redisUrl: redis.url, platformId: world.platformId });
  gateway = await startTcpProxy(world.sandbox.port);
  await world.enqueue(500);
  worker = startWorker();
  await untilSent(world, 2);
  const { platformId } = world;
  dashboard = await openDashboard({ platformId, clock: systemClock as never }, { redisUrl: redis.url });
  browser = await launchChromium();
  pages = await Promise.all(
    SCREENS.map(async (viewport) => {
      const page = await browser.newPage({ viewport });
      await page.goto(dashboard.url);
      return page;
    }),
  );
});

afterAll(async () => {
  await browser.close();
  await dashboard.close();
  await gateway.close();
  await operator.close();
  await world.close();
  await redis.close();
});

interface Shown {
  readonly tone: string;
  readonly headline: string;
  readonly title: string;
}

async function readPulse(page: Page): Promise<Shown> {
  return page.evaluate(() => {
    const { document } = globalThis as unknown as { document: BrowserDocument };
    const pulse = document.querySelector('.pulse');
    const headline = document.querySelector('.pulse h1')?.textContent ?? '';
    return { tone: pulse?.className.replace('pulse ', '') ?? 'none', headline, title: document.title };
  });
}

interface BrowserDocument {
  readonly title: string;
  querySelector(selector: string): { readonly className: string; readonly textContent: string } | null;
}

/** Waits until both pages, which nobody reloads, show it. @returns how long the slower one took, in ms */
async function untilShown(
  tone: string,
  headline: RegExp,
  withinMs = 60_000,
  meanwhile = async (): Promise<void> => Promise.resolve(),
): Promise<number> {
  const startedAt = performance.now();
  let shown: Shown[] = [];
  await until(
    () => `${tone} ${headline.source}, but it is ${JSON.stringify(shown)}`,
    async () => {
      await meanwhile();
      shown = await Promise.all(pages.map(readPulse));
      return shown.every((each) => each.tone === tone && headline.test(each.headline));
    },
    withinMs,
  );
  for (const { headline: text, title } of shown) expect(title).toContain(text);
  return performance.now() - startedAt;
}

/** A fault that cuts off a send makes its payout unknown, and the page says so until an operator ends it. */
async function untilSending(): Promise<void> {
  const ann = { by: 'ann', reason: 'cut off by the fault' };
  await untilShown('good', /^Sending$/, 60_000, async () => {
    const { payouts } = await world.producer.list({ state: 'unknown' }).catch(() => ({ payouts: [] }));
    for (const { payoutId } of payouts)
      await operator.resolve(payoutId, { kind: 'write_off' }, ann).catch(() => undefined);
  });
}

it('is green while payouts are sent', async () => {
  await untilSending();
});

it('turns red within 5 s of SIGKILL of the worker, and green again', async () => {
  worker.kill('SIGKILL');
  await untilShown('bad', /Sender without heartbeat/, RED_WITHIN_MS);
  worker = startWorker();
  await untilSending();
});

it('turns red within 5 s of the gateway going down, and green again', async () => {
  await gateway.close();
  await untilShown('bad', /gateway/i, RED_WITHIN_MS);
  await untilShown('bad', /Gateway down/);
  await gateway.reopen();
  await untilSending();
});

it('turns red within 5 s of Redis going away, and green again', async () => {
  await redis.stop();
  await untilShown('bad', /Redis does not respond/, RED_WITHIN_MS);
  await redis.startAgain();
  await untilSending();
});

it('turns red within 5 s of Redis hanging, and green again', async () => {
  process.kill(redis.pid, 'SIGSTOP');
  try {
    await untilShown('bad', /Redis does not respond/, RED_WITHIN_MS);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  await untilSending();
});

it('keeps focus, text in the search field and scroll position meanwhile, and says when it is not live', async () => {
  await untilSending();
  for (const page of pages) {
    const search = page.getByRole('searchbox');
    await search.fill('order:20');
    await page.evaluate(`scrollTo(0, ${SCROLLED_TO_PX})`);
    const before = await page.locator('.as-of').innerText();
    await until('refreshed', async () => (await page.locator('.as-of').innerText()) !== before);
    expect(await search.inputValue()).toBe('order:20');
    expect(await page.evaluate('document.activeElement.name')).toBe('q');
    // Where lines appear or end above, the browser moves the position with what is in view.
    expect(Number(await page.evaluate('scrollY'))).toBeGreaterThan(SCROLLED_TO_PX / 4);
  }
  await dashboard.close();
  for (const page of pages) {
    await page.getByText('This page could not be refreshed').waitFor({ timeout: 10_000 });
    expect(await page.title()).toMatch(/^Not live/);
  }
});
