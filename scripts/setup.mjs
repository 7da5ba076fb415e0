// Makes a fresh clone ready for `npm test` and `npm run demo`: node_modules as the lock file says, a redis-server, and
// with `--with-browser` a chromium, with `--with-faketime` a faketime, with `--with-promtool` a promtool, with
// `--with-network` what opens network namespaces, with `--with-rumur` what checks the models of test/proofs/model, with
// `--with-commands` what the blocks of the documents call, with `--with-signers` what examples/signers needs: a token
// (SoftHSM2), curl and jq, with `--with-images` what builds an image, with `--with-postgres` a PostgreSQL.
// `--packages-only` leaves out all but node_modules.
// Node built-ins only: it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const INSTALL_FORBIDDEN = process.env.PAYOUTS_NO_INSTALL === '1';

/** How each package manager installs a package, in order of preference. */
const INSTALLERS = [
  {
    tool: 'apt-get',
    commands: (name) => [
      ['apt-get', 'update', '-q'],
      ['apt-get', 'install', '-y', '-q', '--no-install-recommends', name],
    ],
  },
  { tool: 'dnf', commands: (name) => [['dnf', 'install', '-y', name]] },
  { tool: 'apk', commands: (name) => [['apk', 'add', name]] },
  { tool: 'pacman', commands: (name) => [['pacman', '-S', '--noconfirm', name]] },
  { tool: 'brew', commands: (name) => [['brew', 'install', name]] },
];

const OLDEST_SUPPORTED_NODE = 22;

noticeOldNode();
setUpNodeModules();
if (process.argv.includes('--packages-only')) process.exit();
if (process.env.REDIS_URL === undefined) {
  setUpProgram(
    'redis-server',
    (tool) => (tool === 'apt-get' ? 'redis-server' : 'redis'),
    'Install Redis 6.2 or later.',
  );
}
// Only the dashboard's test needs a browser.
if (process.argv.includes('--with-browser')) {
  setUpProgram('chromium', () => 'chromium', 'Install Chromium, as `chromium` on the PATH.');
}
// Only the tests of docs/alerts.yml need it.
if (process.argv.includes('--with-promtool')) {
  const named = { 'apt-get': 'prometheus', dnf: 'golang-github-prometheus' };
  setUpProgram('promtool', (tool) => named[tool] ?? 'prometheus', 'Install Prometheus, which has promtool.');
}
// Only the slow proof in which wall clocks jump needs it.
if (process.argv.includes('--with-faketime')) {
  setUpProgram('faketime', (tool) => (tool === 'apt-get' ? 'faketime' : 'libfaketime'), 'Install libfaketime.');
}

// Only the proofs of late requests need them; only Linux has network namespaces.
if (process.argv.includes('--with-network') && process.platform === 'linux') {
  setUpProgram('ip', (tool) => (tool === 'dnf' ? 'iproute' : 'iproute2'), 'Install iproute2.');
  setUpProgram('nsenter', () => 'util-linux', 'Install util-linux.');
  setUpProgram('socat', () => 'socat', 'Install socat.');
}
// Only the slow tests that run the blocks of the documents need them.
if (process.argv.includes('--with-commands')) {
  for (const name of ['curl', 'jq', 'openssl']) setUpProgram(name, () => name, `Install ${name}.`);
}
// Only the test of examples/signers needs them, and is skipped without.
if (process.argv.includes('--with-signers')) {
  setUpProgram('softhsm2-util', (tool) => (tool === 'apt-get' ? 'softhsm2' : 'softhsm'), 'Install SoftHSM2.');
  setUpProgram('pkcs11-tool', () => 'opensc', 'Install OpenSC, which has pkcs11-tool.');
  for (const name of ['curl', 'jq']) setUpProgram(name, () => name, `Install ${name}.`);
}
// Only the test of the images needs them: they build without a daemon and without a registry of images.
if (process.argv.includes('--with-images')) {
  for (const name of ['buildah', 'debootstrap']) setUpProgram(name, () => name, `Install ${name}.`);
}
// Only the benchmark `durable` needs it. Debian keeps the server's programs out of the PATH, and psql in it.
if (process.argv.includes('--with-postgres')) {
  const named = { 'apt-get': 'postgresql', dnf: 'postgresql-server' };
  setUpProgram('psql', (tool) => named[tool] ?? 'postgresql', 'Install PostgreSQL.');
}
// Only the search of the models needs them.
if (process.argv.includes('--with-rumur')) {
  setUpProgram('rumur', () => 'rumur', 'Install Rumur: https://github.com/Smattr/rumur.');
  setUpProgram(
    'gcc',
    (tool) => (tool === 'apt-get' ? 'build-essential' : 'gcc'),
    'Install gcc, which compiles what Rumur generates.',
  );
}

/** Development works on Node 20 too (docs/decisions/0008-node-versions.md), and the first command must not fail. */
function noticeOldNode() {
  const { node } = process.versions;
  if (Number.parseInt(node) >= OLDEST_SUPPORTED_NODE) return;
  say(`Node ${node} is past its end of life: it works here, but run payouts on Node ${OLDEST_SUPPORTED_NODE} or later`);
}

function setUpNodeModules() {
  const installed = 'node_modules/.package-lock.json';
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync('package-lock.json').mtimeMs) return;
  if (INSTALL_FORBIDDEN) stop('node_modules is missing or older than package-lock.json.', ['npm ci']);
  say('installing the packages of package-lock.json (npm ci)');
  run(['npm', 'ci', '--no-audit', '--no-fund'], {});
}

function setUpProgram(program, packageFor, advice) {
  if (isOnPath(program)) return;
  const installer = INSTALLERS.find(({ tool }) => isOnPath(tool));
  if (installer === undefined) {
    stop(`${program} is not on the PATH and no known package manager was found. ${advice}`, []);
  }
  const { tool } = installer;
  const commands = installer
    .commands(packageFor(tool))
    .map((command) => (needsSudo(tool) ? ['sudo', ...command] : command));
  if (INSTALL_FORBIDDEN) {
    stop(
      `${program} is not on the PATH.`,
      commands.map((command) => command.join(' ')),
    );
  }
  for (const command of commands) {
    say(`${program} is missing, running: ${command.join(' ')}`);
    // A package must not start a service of its own here: tests and demo start the server that they need.
    run(command, { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' });
  }
  if (!isOnPath(program)) stop(`${program} is still not on the PATH after the installation. ${advice}`, []);
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
