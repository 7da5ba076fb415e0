import { writeFileSync } from 'node:fs';
import { renderStatesDoc } from './states-doc.js';

writeFileSync(new URL('../docs/states.md', import.meta.url), renderStatesDoc());
