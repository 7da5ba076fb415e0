import { readFileSync } from 'node:fs';
import { Router } from 'express';

/** One style sheet for all pages, in parts. */
const STYLE_SHEET = ['style.css', 'overview.css', 'lists.css', 'control.css'].map(readAsset).join('\n');

const SCRIPTS = ['page.js', 'live.js'];

/** The files that every page loads. */
export function createAssets(): Router {
  const router = Router();
  router.get('/style.css', (_, response) => {
    response.type('css').send(STYLE_SHEET);
  });
  for (const name of SCRIPTS) {
    const script = readAsset(name);
    router.get(`/${name}`, (_, response) => {
      response.type('js').send(script);
    });
  }
  return router;
}

function readAsset(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}
