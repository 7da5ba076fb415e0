import { readFileSync } from 'node:fs';
import { Router } from 'express';

const STYLE_SHEET = readFileSync(new URL('style.css', import.meta.url), 'utf8');

/** The files that every page loads. */
export function createAssets(): Router {
  const router = Router();
  router.get('/style.css', (_, response) => {
    response.type('css').send(STYLE_SHEET);
  });
  return router;
}
