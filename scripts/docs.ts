/** Writes the documents that are made from the source: `npm run docs`. With `--check` it only says which are not current. */
import { readFileSync, writeFileSync } from 'node:fs';
import { readApi, renderApiDoc } from './api-doc.js';
import { renderEnvExample, renderSettingsDoc } from './settings-docs.js';
import { renderStatesDoc } from './states-doc.js';

const api = readApi();
const documents = {
  'docs/api.md': await renderApiDoc(api),
  'docs/configuration.md': renderSettingsDoc(),
  'docs/states.md': renderStatesDoc(),
  '.env.example': renderEnvExample(),
};
const problems = api.flatMap(({ name, exports }) =>
  exports.filter(({ comment }) => comment === '').map((each) => `${each.name} of ${name} has no doc comment`),
);
for (const [path, text] of Object.entries(documents)) {
  const url = new URL(`../${path}`, import.meta.url);
  if (!process.argv.includes('--check')) writeFileSync(url, text);
  else if (readFileSync(url, 'utf8') !== text) problems.push(`${path} is not current: run \`npm run docs\``);
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
