/**
 * Writes vectors.json anew, from cases.json. It needs PHP with sodium, Python with cryptography, and ssh-keygen.
 *
 *     npx tsx test/control/make-vectors/run.ts && npx prettier --write test/control/vectors.json
 */
import { writeFileSync } from 'node:fs';
import { readCases, runMaker } from './makers.js';

const cases = readCases();
const vectors = {
  cases,
  php: runMaker('php/make.php', cases),
  python: runMaker('python/make.py', cases, ['--ssh-keygen']),
};
writeFileSync(new URL('../vectors.json', import.meta.url), JSON.stringify(vectors));
