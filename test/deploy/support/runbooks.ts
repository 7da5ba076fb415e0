import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './read-compose.js';

/** The runbooks of docs/operations.md: their shell blocks by title. What is read here is what operators read. */
export function readRunbooks(): ReadonlyMap<string, readonly string[]> {
  const page = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
  const [, section = ''] = page.split(/^## Runbooks$/m);
  const [own = ''] = section.split(/^## /m);
  return new Map(
    own
      .split(/^### Runbook: /m)
      .slice(1)
      .map((text) => {
        const [title = ''] = text.split('\n');
        return [title, [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)];
      }),
  );
}
