// Run after `npm install` has changed package-lock.json: adds the optional builds for other platforms that a mirror does not
// carry and npm therefore leaves out; `npm ci` refuses a lock file without them.
import { readFileSync, writeFileSync } from 'node:fs';

const SYSTEMS = ['darwin', 'linux', 'win32', 'freebsd', 'android', 'openharmony'];
const PROCESSORS = ['arm64', 'x64', 'ia32', 'ppc64', 's390x', 'riscv64', 'loong64'];

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
let added = 0;
for (const [place, parent] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (lock.packages[key] !== undefined || lock.packages[`${place}/${key}`] !== undefined) continue;
    lock.packages[key] = describe(name, version, parent.dev === true);
    added += 1;
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([one], [other]) => (one < other ? -1 : 1)));
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`);
process.stdout.write(`${added} optional packages added to package-lock.json\n`);

function describe(name, version, isDev) {
  const parts = name.split(/[-/]/);
  const system = SYSTEMS.find((candidate) => parts.includes(candidate));
  const processor = PROCESSORS.find((candidate) => parts.includes(candidate)) ?? 'arm';
  if (system === undefined) throw new Error(`Cannot tell the platform of the missing optional package ${name}`);
  return { version, cpu: [processor], ...(isDev ? { dev: true } : {}), optional: true, os: [system] };
}
