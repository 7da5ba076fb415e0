// Installs the packages that only the benchmarks use, or those of the folder in argv[2]. Node built-ins only: it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL(`${process.argv[2] ?? '.'}/`, import.meta.url);
const here = (name) => fileURLToPath(new URL(name, folder));
const installed = here('node_modules/.package-lock.json');
if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(here('package-lock.json')).mtimeMs) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: here('.'), stdio: ['ignore', 2, 2] });
  process.exitCode = status ?? 1;
}
