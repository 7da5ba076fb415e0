// tsc copies only TypeScript; this adds the Lua scripts, the assets of the dashboard and the one file of JavaScript.
import { cpSync, writeFileSync } from 'node:fs';

for (const folder of ['base', 'ledger', 'queues', 'dashboard']) {
  cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true, filter: (path) => !/\.c?ts$/.test(path) });
}
// The build is CommonJS (docs/decisions/0010-one-build-of-commonjs.md), unlike the source.
writeFileSync('dist/package.json', '{ "type": "commonjs" }\n');
