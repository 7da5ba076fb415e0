import { writeFileSync } from 'node:fs';
import { renderEnvExample, renderSettingsDoc } from './settings-docs.js';

writeFileSync(new URL('../docs/configuration.md', import.meta.url), renderSettingsDoc());
writeFileSync(new URL('../.env.example', import.meta.url), renderEnvExample());
