// `npm run size`: prints files and bytes of each room of src, and small files that one neighbour alone imports. Fails
// nothing: a number is looked at, not obeyed.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';

const FRAGMENT_LINES = 60;

const files = readdirSync('src', { recursive: true })
  .map((name) => join('src', name))
  .filter((file) => /\.(ts|lua|css|js)$/.test(file));
const rooms = new Map();
for (const file of files) {
  const path = file.split(sep);
  const room = path.length === 2 ? 'index.ts' : path[1];
  const { count, bytes } = rooms.get(room) ?? { count: 0, bytes: 0 };
  rooms.set(room, { count: count + 1, bytes: bytes + statSync(file).size });
}
for (const [room, { count, bytes }] of [...rooms].sort()) {
  console.log(`${room.padEnd(14)} ${String(count).padStart(4)} files ${String(bytes).padStart(8)} bytes`);
}
console.log(`Small files of one importer in their folder: ${findFragments().join(', ') || 'none'}`);

function findFragments() {
  const modules = files.filter((file) => file.endsWith('.ts'));
  const importers = new Map(modules.map((file) => [file, new Set()]));
  for (const file of modules) {
    for (const [, target] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)\.js'/g)) {
      importers.get(normalize(join(dirname(file), `${target}.ts`)))?.add(file);
    }
  }
  return modules.filter((file) => {
    const [importer, ...others] = importers.get(file);
    if (importer === undefined || others.length > 0 || dirname(importer) !== dirname(file)) return false;
    return readFileSync(file, 'utf8').split('\n').length - 1 < FRAGMENT_LINES;
  });
}
