// `npm run check:package`: packs the package as it would be published, installs the tarball beside the applications of
// test/package in a folder outside the repository, and runs them. It needs the npm registry and a redis-server.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const entryPoints = Object.keys(manifest.exports).map((path) => manifest.name + path.slice(1));
const folder = mkdtempSync(join(tmpdir(), 'payout-queue-package-'));
let passed = 0;
let failed = 0;
try {
  cpSync('test/package', folder, { recursive: true });
  const [{ filename, size }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder], '.'));
  process.stdout.write(`${filename}: ${Math.round(size / 1000)} KB\n`);
  run('npm', ['install', '--no-save', '--no-audit', '--no-fund', `./${filename}`]);

  check('publint', () => run('npx', ['publint', 'run', '--strict', filename]));
  check('attw', () => run('npx', ['attw', filename]));
  check('import and require', () => entryPoints.forEach(compareModuleSystems));
  check('payouts', checkCommand);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isDirectory() || entry.name === 'node_modules') continue;
    const application = join(folder, entry.name);
    copyFileSync(join(folder, 'pay-one.ts'), join(application, 'pay-one.ts'));
    check(entry.name, () => run('npm', ['test'], application));
  }
} finally {
  rmSync(folder, { recursive: true });
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;

function check(name, work) {
  const startedAt = performance.now();
  try {
    work();
    passed += 1;
    process.stdout.write(`ok      ${name} (${((performance.now() - startedAt) / 1000).toFixed(1)} s)\n`);
  } catch (error) {
    failed += 1;
    process.stdout.write(`FAILED  ${name}\n${error.message}\n`);
  }
}

/** Node finds the names of a CommonJS module for `import` by reading its text, and misses what it does not understand. */
function compareModuleSystems(name) {
  const script = `
    const required = require('${name}');
    import('${name}').then((imported) => {
      for (const key of Object.keys(required)) require('node:assert').equal(imported[key], required[key], key);
    });`;
  run('node', ['--input-type=commonjs', '--eval', script]);
}

function checkCommand() {
  run('npx', ['payouts', '--help']);
  const printed = run('npx', ['payouts', '--version']).trim();
  if (printed !== manifest.version) throw new Error(`payouts --version prints ${printed}, not ${manifest.version}`);
}

function run(program, args, cwd = folder) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${[program, ...args].join(' ')} failed: ${error?.message ?? ''}\n${stdout}${stderr}`);
}
