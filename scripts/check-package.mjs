// `npm run check:package`: packs the package as it would be published, installs the tarball beside the applications of
// test/package in a folder outside the repository, and runs them. It needs the npm registry and a redis-server.
// `npm run check:package -- guide fresh` runs what has one of these in its name.
import { execFile } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findTwice } from './find-twice.ts';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const entryPoints = Object.keys(manifest.exports).map((path) => manifest.name + path.slice(1));
const only = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'payout-queue-package-'));
let passed = 0;
let failed = 0;
try {
  cpSync('test/package', folder, { recursive: true });
  const [{ filename, size }] = JSON.parse(await run('npm', ['pack', '--json', '--pack-destination', folder], '.'));
  process.stdout.write(`${filename}: ${Math.round(size / 1000)} KB\n`);
  await run('npm', ['install', '--no-save', '--no-audit', '--no-fund', `./${filename}`]);

  const applications = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
    .map(({ name }) => [name, async () => testApplication(join(folder, name))]);
  const checks = [
    ['publint', async () => run('npx', ['publint', 'run', '--strict', filename])],
    ['attw', async () => run('npx', ['attw', filename])],
    ['import and require', async () => Promise.all(entryPoints.map(compareModuleSystems))],
    ['payouts', checkCommand],
    ['a fresh install: npm ls, its SBOM, the files of docker-compose', async () => checkFreshInstall(filename)],
    ...applications,
  ]
    .filter(([name]) => only.length === 0 || only.some((part) => name.includes(part)))
    .values();
  // Two at a time: each waits for a payout, and few machines have a single processor.
  const checkNext = async () => {
    for (const [name, work] of checks) await check(name, work);
  };
  await Promise.all([checkNext(), checkNext()]);
} finally {
  rmSync(folder, { recursive: true });
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;

async function check(name, work) {
  const startedAt = performance.now();
  try {
    await work();
    passed += 1;
    process.stdout.write(`ok      ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)\n`);
  } catch (error) {
    failed += 1;
    process.stdout.write(`FAILED  ${name}\n${error.message}\n`);
  }
}

/** Node finds the names of a CommonJS module for `import` by reading its text, and misses what it does not understand. */
async function compareModuleSystems(name) {
  const script = `
    const required = require('${name}');
    import('${name}').then((imported) => {
      for (const key of Object.keys(required)) require('node:assert').equal(imported[key], required[key], key);
    });`;
  await run('node', ['--input-type=commonjs', '--eval', script]);
}

async function testApplication(application) {
  copyFileSync(join(folder, 'pay-one.ts'), join(application, 'pay-one.ts'));
  await run('npm', ['test'], application);
}

async function checkCommand() {
  await run('npx', ['payouts', '--help']);
  const printed = (await run('npx', ['payouts', '--version'])).trim();
  if (printed !== manifest.version) throw new Error(`payouts --version prints ${printed}, not ${manifest.version}`);
}

/** Without the applications' packages, which may need other versions. */
async function checkFreshInstall(filename) {
  const fresh = mkdtempSync(join(tmpdir(), 'payout-queue-fresh-'));
  try {
    writeFileSync(join(fresh, 'package.json'), '{ "name": "fresh", "version": "1.0.0", "private": true }');
    await run('npm', ['install', '--no-audit', '--no-fund', join(folder, filename)], fresh);
    await run('npm', ['ls', '--all'], fresh);
    const { packages } = JSON.parse(readFileSync(join(fresh, 'node_modules/.package-lock.json'), 'utf8'));
    const problems = findTwice(packages);
    problems.push(...findMissing(JSON.parse(await run('npm', ['sbom', '--sbom-format=cyclonedx'], fresh)).components));
    const installed = join(fresh, 'node_modules', manifest.name);
    const compose = readFileSync(join(installed, 'docker-compose.yml'), 'utf8');
    const examples = compose.match(/.*\/examples\/[\w.-]+/g).map((line) => line.split('./').at(-1));
    const files = ['.env.example', 'deploy/docker/Dockerfile', ...examples];
    problems.push(...files.filter((file) => !existsSync(join(installed, file))).map((file) => `${file} is missing`));
    // As the Dockerfile does.
    await run('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund'], fresh);
    await run('node_modules/.bin/payouts', ['--version'], fresh);
    if (problems.length > 0) throw new Error(problems.join('\n'));
  } finally {
    rmSync(fresh, { recursive: true });
  }
}

/** @returns a problem for each dependency that a bill of materials lacks */
function findMissing(components) {
  const names = new Set(components.filter(({ version }) => version).map(({ name }) => name));
  return [manifest.name, ...Object.keys(manifest.dependencies)]
    .filter((name) => !names.has(name))
    .map((name) => `the SBOM lacks ${name}`);
}

async function run(program, args, cwd = folder) {
  try {
    return (await promisify(execFile)(program, args, { cwd, maxBuffer: 100_000_000 })).stdout;
  } catch ({ message, stdout = '', stderr = '' }) {
    throw new Error(`${[program, ...args].join(' ')} failed: ${message}\n${stdout}${stderr}`);
  }
}
