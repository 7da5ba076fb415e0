// The document of the packed door, by the recommended rules for OpenAPI.
import { writeFileSync } from 'node:fs';
import { createConfig, lintFromString } from '@redocly/openapi-core';

const { renderOpenApi } = await import(new URL('../node_modules/payout-queue/dist/http/openapi.js', import.meta.url));
const source = JSON.stringify(renderOpenApi());
writeFileSync('openapi.json', source);
const config = await createConfig({ extends: ['recommended'] });
const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config });
for (const { severity, ruleId, message } of problems) process.stderr.write(`${severity} ${ruleId}: ${message}\n`);
process.exitCode = problems.length === 0 ? 0 : 1;
