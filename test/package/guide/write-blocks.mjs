// Writes the programs of docs/use-from-code.md, as the installed package has it, for the linter of an application.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const root = join(createRequire(import.meta.url).resolve('payout-queue'), '../..');
const guide = readFileSync(join(root, 'docs/use-from-code.md'), 'utf8');
const blocks = [...guide.matchAll(/```ts\n(\/\/ (\S+)\n.*?)```/gs)];
if (blocks.length < 8) throw new Error(`docs/use-from-code.md has ${blocks.length} programs`);
for (const [, text, name] of blocks) writeFileSync(name, text);
// What the runner copies for other applications.
rmSync('pay-one.ts', { force: true });
