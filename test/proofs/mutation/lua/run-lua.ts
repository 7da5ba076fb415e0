import { cp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCLI, type Config } from 'jest';
import { within } from '../../../../src/base/clock.js';
import { startLocalRedis, type LocalRedis } from '../../../../src/sandbox/local-redis.js';
import { makeLuaMutants } from './lua-mutants.js';
import { INTERRUPTED, scriptTests } from './script-tests.js';

/** A mutant that loops endlessly keeps Redis from replying. */
const DEADLINE_MS = 180_000;

/** Prints a line of JSON for each mutant. A process of its own, since Jest leaves behind what it loads. */
async function main(script: string) {
  const root = fileURLToPath(new URL('../../../..', import.meta.url));
  const sandbox = join(root, '.stryker-tmp', 'lua');
  await makeSandbox(root, sandbox);
  const path = join(sandbox, 'src/ledger/lua', `${script}.lua`);
  const sound = await readFile(path, 'utf8');
  let redis = await startRedis();
  try {
    if ((await runTests(sandbox, script, redis)) !== 'passed')
      throw new Error(`The tests of ${script}.lua fail as it is`);
    for (const { source, line, mistake } of makeLuaMutants(sound)) {
      await writeFile(path, source);
      const result = await runTests(sandbox, script, redis);
      if (result === 'hung') redis = await startRedis();
      process.stdout.write(`${JSON.stringify({ line, mistake, killed: result !== 'passed' })}\n`);
    }
  } finally {
    await redis.stop();
    await rm(sandbox, { recursive: true });
  }
}

async function makeSandbox(root: string, sandbox: string) {
  await rm(sandbox, { recursive: true, force: true });
  await mkdir(sandbox, { recursive: true });
  for (const name of ['src', 'test', 'scripts', 'docs', 'package.json', 'jest.config.js']) {
    const filter = (path: string) => !path.includes('node_modules');
    await cp(join(root, name), join(sandbox, name), { recursive: true, filter });
  }
  await symlink(join(root, 'node_modules'), join(sandbox, 'node_modules'));
}

async function startRedis() {
  const redis = await startLocalRedis({ args: ['--appendonly', 'no'] });
  process.env['REDIS_URL'] = redis.url;
  return redis;
}

async function runTests(sandbox: string, script: string, redis: LocalRedis) {
  const ended = runJest(sandbox, script);
  const hung = (await within(DEADLINE_MS, ended)) === undefined;
  if (hung) await redis.stop();
  const passed = await ended;
  return hung ? 'hung' : passed ? 'passed' : 'failed';
}

/** One file after the other, up to the first that fails: Jest's own `bail` would end this process as well. */
async function runJest(sandbox: string, script: string) {
  const { default: base } = (await import(join(sandbox, 'jest.config.js'))) as { default: Config };
  // No settings of one project, of which this is the only one.
  delete base.maxWorkers;
  delete base.testSequencer;
  delete base.workerGracefulExitTimeout;
  for (const name of [...(scriptTests[script] ?? []), INTERRUPTED]) {
    const config: Config = {
      ...base,
      rootDir: sandbox,
      testMatch: [`<rootDir>/test/${name}`],
      testPathIgnorePatterns: [],
      testEnvironment: '<rootDir>/test/proofs/mutation/lua/fail-fast-environment.mjs',
      testTimeout: 5_000,
    };
    const argv = {
      ...{ _: [], $0: '', config: JSON.stringify(config), runInBand: true, silent: true, reporters: [] },
      ...(name === INTERRUPTED && !script.startsWith('prelude/') && { testNamePattern: `\\(${script}[:)]` }),
    };
    const { results } = await runCLI(argv, [sandbox]);
    if (!results.success) return false;
  }
  return true;
}

await main(process.argv[2] ?? '');
// Jest keeps a timer or two.
process.exit(0);
