// `npm run size`: compares the rooms of src with size.json. Fails if a room has more files or bytes than its budget.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, sep } from 'node:path';

/** A file with one importer in its own folder and fewer lines than this belongs into that importer. */
const FRAGMENT_LINES = 60;
const budgets = JSON.parse(readFileSync('size.json', 'utf8'));

const files = readdirSync('src', { recursive: true })
  .map((name) => join('src', name))
  .filter((file) => /\.(ts|lua|css|js)$/.test(file));
const rooms = new Map(Object.keys(budgets.rooms).map((room) => [room, { files: 0, bytes: 0 }]));
for (const file of files) {
  const path = file.split(sep);
  const room = path.length === 2 ? 'index.ts' : path[1];
  const { files: count, bytes } = rooms.get(room) ?? { files: 0, bytes: 0 };
  rooms.set(room, { files: count + 1, bytes: bytes + statSync(file).size });
}

const problems = [];
for (const [room, { files: count, bytes }] of rooms) {
  const budget = budgets.rooms[room] ?? { files: 0, bytes: 0 };
  console.log(`${room.padEnd(14)} ${of(count, budget.files)} files ${of(bytes, budget.bytes)} bytes`);
  if (count > budget.files) problems.push(`${room} has ${count} files, its budget is ${budget.files}`);
  if (bytes > budget.bytes) problems.push(`${room} has ${bytes} bytes, its budget is ${budget.bytes}`);
}
const fragments = findFragments();
console.log(`${'fragments'.padEnd(14)} ${of(fragments.length, budgets.fragments)}`);
if (fragments.length > budgets.fragments)
  problems.push(`more than ${budgets.fragments} fragments: ${fragments.join(', ')}`);

for (const problem of problems) console.error(problem);
if (problems.length > 0)
  console.error('Take something out, or raise the budget in size.json and give the reason (CONTRIBUTING.md, "Size").');
process.exitCode = problems.length === 0 ? 0 : 1;

function of(value, budget) {
  return `${String(value).padStart(8)} of ${String(budget).padStart(8)}`;
}

/** Small files that one neighbour alone imports. */
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
