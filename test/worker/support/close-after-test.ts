import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';

interface Closable {
  close(): Promise<void>;
}

const open: Closable[] = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

export function closeAfterTest<Thing extends Closable>(thing: Thing): Thing {
  open.push(thing);
  return thing;
}

export function afterTest(end: () => unknown) {
  open.push({
    close: async () => {
      await end();
    },
  });
}

export async function makeFolder(name: string): Promise<Closable & { readonly dir: string }> {
  const dir = await mkdtemp(join(tmpdir(), `payouts-${name}-`));
  return { dir, close: async () => rm(dir, { recursive: true, force: true }) };
}

export const folderOfTest = async (name: string) => closeAfterTest(await makeFolder(name)).dir;
