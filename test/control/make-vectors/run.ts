/**
 * Writes vectors.json anew, from cases.json. It needs Python with cryptography, and ssh-keygen.
 *
 *     npx tsx test/control/make-vectors/run.ts && npx prettier --write test/control/vectors.json
 */
import { writeFileSync } from 'node:fs';
import { makeVectors } from './makers.js';

writeFileSync(new URL('../vectors.json', import.meta.url), JSON.stringify(makeVectors('--ssh-keygen')));
