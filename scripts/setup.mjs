// Makes a fresh clone ready for `npm test` and `npm run demo`: node_modules as the lock file says, and a redis-server.
// Node built-ins only: it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const INSTALL_FORBIDDEN = process.env.PAYOUTS_NO_INSTALL === '1';

/** How each package manager installs Redis, in the order in which they are looked for. */
const REDIS_INSTALLERS = [
  {
    tool: 'apt-get',
    commands: [
      ['apt-get', 'update', '-q'],
      ['apt-get', 'install', '-y', '-q', '--no-install-recommends', 'redis-server'],
    ],
  },
  { tool: 'dnf', commands: [['dnf', 'install', '-y', 'redis']] },
  { tool: 'apk', commands: [['apk', 'add', 'redis']] },
  { tool: 'pacman', commands: [['pacman', '-S', '--noconfirm', 'redis']] },
  { tool: 'brew', commands: [['brew', 'install', 'redis']] },
];

setUpNodeModules();
setUpRedis();

function setUpNodeModules() {
  const installed = 'node_modules/.package-lock.json';
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync('package-lock.json').mtimeMs) return;
  if (INSTALL_FORBIDDEN) stop('node_modules is missing or older than package-lock.json.', ['npm ci']);
  say('installing the packages of package-lock.json (npm ci)');
  run(['npm', 'ci', '--no-audit', '--no-fund'], {});
}

function setUpRedis() {
  if (process.env.REDIS_URL !== undefined || isOnPath('redis-server')) return;
  const installer = REDIS_INSTALLERS.find(({ tool }) => isOnPath(tool));
  if (installer === undefined) {
    stop('redis-server is not on the PATH and no known package manager was found. Install Redis 6.2 or later.', []);
  }
  const commands = installer.commands.map((command) => (needsSudo(installer.tool) ? ['sudo', ...command] : command));
  if (INSTALL_FORBIDDEN) {
    stop(
      'redis-server is not on the PATH.',
      commands.map((command) => command.join(' ')),
    );
  }
  for (const command of commands) {
    say(`redis-server is missing, running: ${command.join(' ')}`);
    // A package must not start a service of its own here: tests and demo start the server that they need.
    run(command, { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' });
  }
  if (!isOnPath('redis-server')) stop('redis-server is still not on the PATH after the installation.', []);
}

function needsSudo(tool) {
  return tool !== 'brew' && process.getuid?.() !== 0;
}

function isOnPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, program)));
}

function run([program, ...args], environment) {
  const result = spawnSync(program, args, { stdio: ['ignore', 2, 2], env: { ...process.env, ...environment } });
  if (result.status !== 0)
    stop(`${program} failed${result.error === undefined ? '' : `: ${result.error.message}`}.`, [
      [program, ...args].join(' '),
    ]);
}

function say(message) {
  process.stderr.write(`setup: ${message}\n`);
}

function stop(problem, commands) {
  say(problem);
  if (commands.length > 0) say(`run this, then try again:\n  ${commands.join('\n  ')}`);
  process.exit(1);
}
