// What tsc does not do: the Lua scripts, the assets of the dashboard, the one file of JavaScript, and a main module that
// loads what is used when it is used.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';

const MAIN = 'dist/index.js';

for (const folder of ['base', 'ledger', 'queues', 'dashboard']) {
  cpSync(`src/${folder}`, `dist/${folder}`, { recursive: true, filter: (path) => !/\.c?ts$/.test(path) });
}
// The build is CommonJS (docs/decisions/0010-one-build-of-commonjs.md), unlike the source.
writeFileSync('dist/package.json', '{ "type": "commonjs" }\n');
writeFileSync(MAIN, loadLate(readFileSync(MAIN, 'utf8')));

/**
 * `require` of the main module then loads neither the worker nor the gateway's client for a process that names only the
 * producer. The form of the exports stays, as Node finds their names for `import` by reading the text.
 */
function loadLate(text) {
  const isLate = text.includes('// Loaded late.');
  const late = text.replace(/^var (\w+) = (require\("[^"]+"\));$/gm, (_, module, load) => {
    const names = [...text.matchAll(new RegExp(`return ${module}\\.(\\w+);`, 'g'))].map(([, name]) => name);
    return `var ${module} = { ${names.map((name) => `get ${name}() { return ${load}.${name}; }`).join(', ')} }; // Loaded late.`;
  });
  if (!isLate && late === text)
    throw new Error(`${MAIN} has another form than this script knows: nothing is loaded late`);
  return late;
}
