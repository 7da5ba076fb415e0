import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium, type Browser } from 'playwright-core';

/** Starts the machine's own chromium. A missing one is an error: a page that no browser opens breaks unnoticed. */
export async function launchChromium(): Promise<Browser> {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const executablePath = folders.map((folder) => join(folder, 'chromium')).find(isExecutable);
  if (executablePath === undefined)
    throw new Error('chromium is not on the PATH: run `node scripts/setup.mjs --with-browser`');
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync'];
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', ...quiet];
  return chromium.launch({ executablePath, args });
}

function isExecutable(path: string) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
