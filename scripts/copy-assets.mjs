// tsc copies no files that are not TypeScript: the Lua scripts go along here.
import { cpSync } from 'node:fs';

for (const folder of ['ledger', 'queues']) {
  cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true, filter: (path) => !path.endsWith('.ts') });
}
