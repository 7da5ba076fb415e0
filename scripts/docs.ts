/**
 * Writes the documents that are made from the source: `npm run docs`. With `--check` it only says which are not current.
 * Both check the dashboard for Grafana, and that each exported name has a user.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readApi, renderApiDoc } from './api-doc.js';
import { renderAttacks } from './attacks-doc.js';
import { checkGrafana, type GrafanaDashboard } from './check-grafana.js';
import { renderDependencies } from './dependencies-doc.js';
import { findUnusedExports } from './find-unused-exports.js';
import { renderSendChecks } from './send-checks-doc.js';
import { renderEnvExample, renderSettingsDoc } from './settings-docs.js';
import { renderRooms } from './rooms-doc.js';
import { renderStatesDoc } from './states-doc.js';
import { renderStops } from './stops-doc.js';
import { renderStoredData } from './stored-data-doc.js';
import { renderTold } from './told-doc.js';

const api = readApi();
const dependencies = renderDependencies(read('docs/architecture.md'));
const documents = {
  'docs/api.md': await renderApiDoc(api),
  'docs/architecture.md': renderStops(renderSendChecks(renderRooms(dependencies.text))),
  'docs/configuration.md': renderSettingsDoc(),
  'docs/monitoring.md': renderTold(read('docs/monitoring.md')),
  'docs/proofs.md': renderAttacks(read('docs/proofs.md')),
  'docs/states.md': renderStatesDoc(),
  'docs/stored-data.md': renderStoredData(read('docs/stored-data.md')),
  '.env.example': renderEnvExample(),
};
const runbooks = readdirSync(urlOf('docs/runbooks')).map((file) => file.replace(/\.md$/, ''));
const problems = [
  ...dependencies.problems,
  ...findUnusedExports(readSources('src'), entriesOf(read('package.json')), readSources('test', 'scripts', 'bench')),
  ...checkGrafana(JSON.parse(read('docs/grafana-dashboard.json')) as GrafanaDashboard, runbooks),
  ...api.flatMap(({ name, exports }) =>
    exports.flatMap((each) => [
      ...(each.comment === '' ? [`${each.name} of ${name} has no doc comment`] : []),
      ...each.unexported.map((type) => `${each.name} of ${name} names ${type}, which no entry point exports`),
    ]),
  ),
];
for (const [path, text] of Object.entries(documents)) {
  if (!process.argv.includes('--check')) writeFileSync(urlOf(path), text);
  else if (read(path) !== text) problems.push(`${path} is not current: run \`npm run docs\``);
}
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;

function urlOf(path: string): URL {
  return new URL(`../${path}`, import.meta.url);
}

/** The TypeScript files of these folders, and the modules beside them; without what the benchmarks install. */
function readSources(...folders: readonly string[]): Map<string, string> {
  const paths = folders.flatMap((folder) =>
    readdirSync(urlOf(folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  return new Map(
    paths.filter((path) => /^(?!.*node_modules).*((?<!\.d)\.ts|\.mjs)$/.test(path)).map((path) => [path, read(path)]),
  );
}

/** The sources of what package.json exports. */
function entriesOf(text: string): string[] {
  const { exports } = JSON.parse(text) as { exports: Readonly<Record<string, { default: string }>> };
  return Object.values(exports).map((each) => each.default.replace('./dist/', 'src/').replace(/js$/, 'ts'));
}

function read(path: string): string {
  return readFileSync(urlOf(path), 'utf8');
}
