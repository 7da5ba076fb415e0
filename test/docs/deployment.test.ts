import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import { validate } from 'dockerfile-utils';
import { findBuiltProgram } from '../support/built-program.js';

const root = fileURLToPath(new URL('../../', import.meta.url));

it('the Dockerfile has no mistake', () => {
  expect(validate(readFileSync(`${root}Dockerfile`, 'utf8')).map(({ message }) => message)).toEqual([]);
});

it('the Dockerfile copies every script that the build runs', () => {
  const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8');
  const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: { build: string } };
  const scripts = [...manifest.scripts.build.matchAll(/scripts\/[\w.-]+/g)].map(([path]) => path);
  expect(scripts.length).toBeGreaterThan(0);
  expect(scripts.filter((path) => !dockerfile.includes(path))).toEqual([]);
});

it('the Dockerfile puts `payouts` on PATH and pins its images by content', () => {
  const dockerfile = readFileSync(`${root}Dockerfile`, 'utf8');
  expect(dockerfile).toContain('ln -s /app/dist/cli/main.js /usr/local/bin/payouts');
  expect(dockerfile).toContain('ENTRYPOINT ["payouts"]');
  const images = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image = '']) => image);
  expect(images.length).toBe(2);
  for (const image of images) expect(image).toMatch(/:\d+\.\d+\.\d+[\w-]*@sha256:[0-9a-f]{64}$/);
});

it('the built program runs through a link on PATH, as in the image', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'payouts-path-'));
  try {
    await symlink(findBuiltProgram(), join(dir, 'payouts'));
    const { status, stdout } = spawnSync(process.execPath, [join(dir, 'payouts'), '--version'], { encoding: 'utf8' });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    expect(readFileSync(findBuiltProgram(), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  } finally {
    await rm(dir, { recursive: true });
  }
});
