// tsc copies only TypeScript; this adds the Lua scripts and the style sheet.
import { cpSync } from 'node:fs';

for (const folder of ['ledger', 'queues', 'dashboard']) {
  cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true, filter: (path) => !path.endsWith('.ts') });
}
