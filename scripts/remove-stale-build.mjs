import { existsSync, readdirSync, rmSync } from 'node:fs';

const [SRC, DIST] = ['src', 'dist'].map((name) => new URL(`../${name}`, import.meta.url));

function modulesIn(folder, ending) {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
  const modules = names.filter((name) => name.endsWith(ending)).map((name) => name.slice(0, -ending.length));
  return modules.sort().join('\n');
}

// tsc writes only what has changed: files of a deleted module would stay, and could still be imported; files that somebody
// removed would not come back.
if (modulesIn(SRC, '.ts') !== modulesIn(DIST, '.d.ts')) rmSync(DIST, { recursive: true, force: true });
