import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { nameFolder } from '../../../src/worker/sharing/open-sharing.js';

let dir: string;
let journals: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'payouts-folder-'));
  journals = join(dir, 'journals');
  await mkdir(journals);
});

afterAll(async () => {
  await rm(dir, { recursive: true });
});

it('one folder has one name, whatever it is called', async () => {
  const name = await nameFolder(journals);
  await symlink(journals, join(dir, 'link'));
  expect(await nameFolder(join(dir, 'link'))).toBe(name);
  await writeFile(join(journals, '1.journal'), 'a line');
  expect(await nameFolder(journals)).toBe(name);
});

it('another folder at the same path has another', async () => {
  const name = await nameFolder(journals);
  await rename(journals, join(dir, 'before'));
  await mkdir(journals);
  expect(await nameFolder(journals)).not.toBe(name);
});

it('hosts that were copied from one image, with equal names and folders, have two', async () => {
  const [one, other] = [join(dir, 'one'), join(dir, 'other')];
  await writeFile(one, '11111111-2222-4333-8444-555555555555\n');
  await writeFile(other, '66666666-7777-4888-9999-000000000000\n');
  expect(await nameFolder(journals, one)).toBe(await nameFolder(journals, one));
  expect(await nameFolder(journals, one)).not.toBe(await nameFolder(journals, other));
});

it('a folder that is not there has none', async () => {
  expect(await nameFolder(join(dir, 'nowhere'))).toBeUndefined();
});
