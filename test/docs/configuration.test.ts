import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { renderEnvExample, renderSettingsDoc } from '../../scripts/settings-docs.js';
import { readConfig, type VariableName } from '../../src/base/config.js';
import type { Setting } from '../../src/base/setting.js';
import { SETTINGS } from '../../src/base/settings.js';

const rows = new Map(Object.values(SETTINGS).map((row): [string, Setting] => [row.variable, row]));

function readRepositoryFile(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

it('docs/configuration.md and .env.example are what `npm run docs` makes', () => {
  expect(readRepositoryFile('docs/configuration.md')).toBe(renderSettingsDoc());
  expect(readRepositoryFile('.env.example')).toBe(renderEnvExample());
});

describe.each([...rows.values()])('$variable', (row) => {
  it('is described in docs/configuration.md', () => {
    const line = renderSettingsDoc()
      .split('\n')
      .find((each) => each.startsWith(`- \`${row.variable}\``));
    expect(line).toMatch(/: [A-Z`].*\.$/);
  });

  it('has a default that its own rule accepts', () => {
    if ('default' in row) expect(row.rule.safeParse(row.default).success).toBe(true);
  });
});

describe('.env.example', () => {
  const environment = Object.fromEntries(
    renderEnvExample()
      .split('\n')
      .filter((line) => /^[A-Z]/.test(line))
      .map((line) => line.split(/=(.*)/s).slice(0, 2)),
  ) as Record<string, string>;

  it('is an environment with the defaults of the code', () => {
    const names = [...rows].filter(([, { secret }]) => secret !== true).map(([name]) => name as VariableName);
    const required = Object.fromEntries(
      names.filter((name) => 'required' in (rows.get(name) ?? {})).map((name) => [name, environment[name]]),
    );
    expect(readConfig(names, { ...environment, DASHBOARD_USER: '' })).toEqual(readConfig(names, required));
  });
});
