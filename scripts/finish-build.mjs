// What tsc does not do: one module with the Lua scripts and the assets, and a main module that loads what is used when it
// is used.
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const MAIN = 'dist/index.js';
const TEXTS = ['ledger/lua', 'queues', 'dashboard'].flatMap((folder) =>
  readdirSync(`src/${folder}`, { recursive: true })
    .filter((name) => /\.(lua|js|css)$/.test(name))
    .map((name) => `${folder}/${name}`),
);

writeFileSync('dist/base/source-path.cjs', renderTexts());
for (const name of ['source-path.d.cts', 'late-yaml.cjs', 'late-yaml.d.cts'])
  copyFileSync(`src/base/${name}`, `dist/base/${name}`);
// The build is CommonJS (docs/decisions/0010-one-build-of-commonjs.md), unlike the source.
writeFileSync('dist/package.json', '{ "type": "commonjs" }\n');
writeFileSync(MAIN, loadLate(readFileSync(MAIN, 'utf8')));

/** A bundler does not follow files that are read: each text is in the module. */
function renderTexts() {
  const { name, version, engines } = JSON.parse(readFileSync('package.json', 'utf8'));
  const texts = Object.fromEntries(TEXTS.map((path) => [path, readFileSync(`src/${path}`, 'utf8')]));
  texts['../package.json'] = JSON.stringify({ name, version, engines });
  return `const { join } = require('node:path');
const TEXTS = ${JSON.stringify(texts, undefined, 1)};
exports.sourcePath = (path) => join(__dirname, '..', path);
exports.readSource = (path) => TEXTS[path];
`;
}

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
