// tsc copies no files that are not TypeScript: the Lua scripts and the style sheet go along here.
import { cpSync } from 'node:fs';

for (const folder of ['ledger', 'queues', 'dashboard']) {
  cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true, filter: (path) => !path.endsWith('.ts') });
}
