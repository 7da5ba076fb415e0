// `npm run test:node -- 22` runs `npm test` on another version of Node; what follows the version goes to jest. With
// `--package` it runs `npm run check:package`, with `--folder` it prints the folder of that version's `node` and runs
// nothing. That Node is the npm registry's own package, kept in a cache folder outside the repository.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

const [version, ...rest] = process.argv.slice(2);
if (!/^\d+(\.\d+){0,2}$/.test(version ?? '')) {
  process.stderr.write('usage: npm run test:node -- VERSION [--package | --folder | FILE …], such as 22 or 24.1.0\n');
  process.exit(2);
}
const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'payout-queue', `node-${version}`);
const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
const bin = join(folder, 'node_modules', name, 'bin');

if (!existsSync(bin)) {
  mkdirSync(folder, { recursive: true });
  const silently = ['--no-audit', '--no-fund', '--no-save', '--silent'];
  run('npm', ['install', '--prefix', folder, ...silently, `${name}@${version}`]);
}
if (rest[0] === '--folder') {
  process.stdout.write(`${bin}\n`);
  process.exit();
}
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` };
run(join(bin, 'node'), ['--version'], env);
run('npm', rest[0] === '--package' ? ['run', 'check:package'] : ['test', '--', ...rest], env);

function run(program, args, environment = process.env) {
  const { status, error } = spawnSync(program, args, { stdio: 'inherit', env: environment });
  if (error !== undefined) process.stderr.write(`${program}: ${error.message}\n`);
  if (status !== 0) process.exit(status ?? 1);
}
