import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './read-compose.js';

const FOLDER = join(ROOT, 'docs/runbooks');

/** The blocks marked `sh` of each page of docs/runbooks, by the page's name. What is read here is what operators read. */
export function readRunbooks(): ReadonlyMap<string, readonly string[]> {
  const pages = readdirSync(FOLDER).map((file): [string, readonly string[]] => {
    const text = readFileSync(join(FOLDER, file), 'utf8');
    return [file.replace(/\.md$/, ''), [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)];
  });
  return new Map(pages.filter(([, blocks]) => blocks.length > 0));
}
