// `npm run check:package`: packs the package as it would be published, installs the tarball into an empty folder, imports
// every export there and runs the command. Before a release; it needs the npm registry.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'payout-queue-package-'));
try {
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder], '.'));
  const tarball = join(folder, filename);
  run('npx', ['publint', 'run', '--strict', tarball], '.');
  // Only ES modules: `require` of older Node versions is the resolution that it may report.
  run('npx', ['--yes', '@arethetypeswrong/cli@0.18.5', tarball, '--profile', 'esm-only'], '.');

  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module', private: true }));
  run('npm', ['install', '--no-audit', '--no-fund', tarball], folder);
  const names = Object.keys(manifest.exports).map((path) => manifest.name + path.slice(1));
  const imports = names.map((name) => `console.log(Object.keys(await import('${name}')).length, '${name}')`).join('\n');
  process.stdout.write(run('node', ['--input-type=module', '--eval', imports], folder));
  run('npx', ['payouts', '--help'], folder);
  const printed = run('npx', ['payouts', '--version'], folder).trim();
  if (printed !== manifest.version) throw new Error(`payouts --version prints ${printed}, not ${manifest.version}`);
  process.stdout.write(`${filename} is complete\n`);
} finally {
  rmSync(folder, { recursive: true });
}

function run(program, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(`${[program, ...args].join(' ')} failed: ${error?.message ?? ''}\n${stdout}${stderr}`);
}
