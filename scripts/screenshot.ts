/**
 * Takes pictures of every page of the dashboard in every condition, at two widths, light and dark, into `pictures/`, to be
 * looked at; and those of the documents into docs/images/. A real dashboard over a real ledger, in a browser:
 * `npm run screenshot [NAME …]` after the pages have changed; with names, of these scenes only (`docs`: the documents').
 */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { startLocalRedis, type LocalRedis } from '../src/sandbox/local-redis.js';
import { launchChromium } from '../test/dashboard/support/launch-chromium.js';
import { openDashboard, type RunningDashboard } from '../test/dashboard/support/running-dashboard.js';
import { openSampleAccount, type SampleAccount, signSample } from '../test/dashboard/support/sample-account.js';
import { SCENES, type Scene } from './pictures/scenes.js';

const FOLDER = new URL('../pictures/', import.meta.url);
const DOCS_FOLDER = new URL('../docs/images/', import.meta.url);
const DOCS_SCREEN = { width: 1280, height: 860 };
const DOCS_QUALITY = 72;

/** Fixed accounts, and the sample's fixed clock: the same pages give much the same picture. */
const PLATFORM_ID = 4242;
const OTHER_PLATFORM_ID = 4243;

const SCREENS = [
  { name: 'wide', viewport: { width: 1440, height: 900 } },
  { name: 'phone', viewport: { width: 390, height: 844 } },
];
const COLOUR_SCHEMES = ['light', 'dark'] as const;

/** The first heartbeats and sends are seen by then. */
const SETTLE_MS = 3_500;

interface Picture {
  readonly name: string;
  readonly url: string;
}

async function takePictures(browser: Browser, pictures: readonly Picture[]): Promise<void> {
  for (const { name: screen, viewport } of SCREENS) {
    for (const colorScheme of COLOUR_SCHEMES) {
      const page = await browser.newPage({ viewport, colorScheme });
      for (const { name, url } of pictures) {
        await page.goto(url);
        await page.waitForLoadState('load');
        const picture = await page.screenshot({ fullPage: true });
        await writeFile(new URL(`${name}-${screen}-${colorScheme}.png`, FOLDER), picture);
      }
      await page.close();
    }
  }
  process.stdout.write(`${pictures.map(({ name }) => name).join(', ')}\n`);
}

async function showScene(browser: Browser, scene: Scene): Promise<void> {
  const account = await openSampleAccount(PLATFORM_ID);
  const signed = scene.isSigned === true ? await signSample(account) : undefined;
  const end = await scene.prepare(account);
  const dashboard = await openDashboard(account, signed?.options);
  try {
    await settle(dashboard);
    const pictures = Object.entries(scene.pages).map(([page, path]) => ({
      name: `${scene.name}-${page}`,
      url: dashboard.url + path,
    }));
    if (scene.name === 'docs') await takeDocsPictures(browser, scene, dashboard.url);
    else await takePictures(browser, pictures);
  } finally {
    end();
    await dashboard.close();
    await account.close();
    await signed?.close();
  }
}

/** As WebP, which is a third of a PNG's size: the first screen of each page, and of the overview in the dark too. */
async function takeDocsPictures(browser: Browser, { pages }: Scene, url: string): Promise<void> {
  await mkdir(DOCS_FOLDER, { recursive: true });
  for (const colorScheme of COLOUR_SCHEMES) {
    const page = await browser.newPage({ viewport: DOCS_SCREEN, colorScheme });
    const session = await page.context().newCDPSession(page);
    for (const [name, path] of Object.entries(pages)) {
      if (colorScheme === 'dark' && name !== 'overview') continue;
      await page.goto(url + path);
      await page.waitForLoadState('load');
      const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: DOCS_QUALITY });
      const file = colorScheme === 'dark' ? `${name}-dark.webp` : `${name}.webp`;
      await writeFile(new URL(file, DOCS_FOLDER), Buffer.from(data, 'base64'));
    }
    await page.close();
  }
  process.stdout.write(`docs/images: ${Object.keys(pages).join(', ')}\n`);
}

/** The dashboard watches only while someone looks. */
async function settle(dashboard: RunningDashboard): Promise<void> {
  await dashboard.read('overview');
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

async function showSeveralAccounts(browser: Browser): Promise<void> {
  const find = (name: string): Scene['prepare'] => SCENES.find((scene) => scene.name === name)?.prepare ?? noScene;
  const accounts: SampleAccount[] = [];
  const ends: (() => void)[] = [];
  for (const [platformId, name] of [
    [PLATFORM_ID, 'sending'],
    [OTHER_PLATFORM_ID, 'gateway-down'],
  ] as const) {
    const account = await openSampleAccount(platformId);
    accounts.push(account);
    ends.push(await find(name)(account));
  }
  const [first] = accounts;
  if (first === undefined) return;
  const platformId = accounts.map((account) => account.platformId);
  const dashboard = await openDashboard({ clock: first.clock, platformId });
  try {
    await dashboard.read('accounts');
    await settle(dashboard);
    await takePictures(browser, [
      { name: 'accounts', url: `${dashboard.url}accounts` },
      { name: 'accounts-one', url: `${dashboard.url}accounts/${PLATFORM_ID}/overview` },
    ]);
  } finally {
    for (const end of ends) end();
    await dashboard.close();
    for (const account of accounts) await account.close();
  }
}

async function noScene(): Promise<never> {
  return Promise.reject(new Error('There is no such scene'));
}

/** With a Redis of its own, which then ends. */
async function showWithoutRedis(browser: Browser, redis: LocalRedis): Promise<void> {
  const account = await openSampleAccount(PLATFORM_ID);
  const end = (await SCENES[0]?.prepare(account)) ?? (() => undefined);
  const dashboard = await openDashboard(account);
  try {
    await settle(dashboard);
    end();
    await redis.stop();
    await settle(dashboard);
    await takePictures(browser, [{ name: 'redis-gone-overview', url: `${dashboard.url}overview` }]);
  } finally {
    await dashboard.close();
    account.redis.disconnect();
    await account.queues.close().catch(() => undefined);
  }
}

const wanted = process.argv.slice(2);
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name);
if (wanted.length === 0) await rm(FOLDER, { recursive: true, force: true });
await mkdir(FOLDER, { recursive: true });

const redis = await startLocalRedis();
process.env['REDIS_URL'] = redis.url;
const browser = await launchChromium();
try {
  for (const scene of SCENES) if (isWanted(scene.name)) await showScene(browser, scene);
  if (isWanted('accounts')) await showSeveralAccounts(browser);
  if (isWanted('redis-gone')) await showWithoutRedis(browser, redis);
} finally {
  await browser.close();
  await redis.stop();
}
