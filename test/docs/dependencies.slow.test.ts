import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { findTwice } from '../../scripts/find-twice.js';
import { folderOfTest } from '../worker/support/close-after-test.js';

/** What `npm run check` says of dependencies, tried on a copy of the repository. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

async function checkWith(dependency: string | undefined) {
  const copy = await folderOfTest('dependencies');
  // The engines that the benchmarks install are 250 MB.
  const filter = (path: string) => !path.includes('node_modules', ROOT.length);
  for (const name of ['bench', 'docs', 'scripts', 'src', 'test', 'package-lock.json', 'tsconfig.json', '.env.example'])
    cpSync(join(ROOT, name), join(copy, name), { recursive: true, filter });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    scripts: { check: string };
  };
  if (dependency !== undefined) manifest.dependencies[dependency] = '^1.0.0';
  writeFileSync(join(copy, 'package.json'), JSON.stringify(manifest));
  // The part of `npm run check` that looks at them.
  expect(manifest.scripts.check.split(' && ')).toContain('npm run docs:check');
  const { status, stderr } = spawnSync('npm', ['run', '--silent', 'docs:check'], { cwd: copy, encoding: 'utf8' });
  return { status, stderr };
}

it('npm run check fails for a dependency that nothing imports', async () => {
  expect(await checkWith(undefined)).toEqual({ status: 0, stderr: '' });
  const { status, stderr } = await checkWith('left-alone');
  expect(status).toBe(1);
  expect(stderr).toContain('nothing in src imports the dependency left-alone: remove it from package.json');
});

it('npm run check fails for a package that an application would install twice, and for an exception that is none', () => {
  const once = { 'node_modules/a': { version: '1.0.0' } };
  const mime = (folder: string) => ({ [`${folder}mime-types`]: {}, [`${folder}mime-db`]: {} });
  const known = { ...mime('node_modules/'), ...mime('node_modules/form-data/node_modules/') };
  expect(findTwice({ ...once, ...known })).toEqual([]);
  expect(findTwice({ ...once, ...known, 'node_modules/b/node_modules/a': { version: '2.0.0' } })).toEqual([
    'a is installed 2 times (1.0.0, 2.0.0): let one version do',
  ]);
  expect(findTwice({ ...once, ...mime('node_modules/') })).toEqual([
    'mime-types is installed once: remove it from TWICE',
    'mime-db is installed once: remove it from TWICE',
  ]);
});
