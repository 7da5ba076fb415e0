import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PARSED: unknown = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true });

export interface ComposeService {
  readonly image?: string;
  readonly profiles?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly (string | { readonly source: string; readonly target: string })[];
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly stop_grace_period?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
}

export interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

/** docker-compose.yml as compose reads it with this environment: `${NAME:-default}` filled in, `$$` as `$`. */
export function readCompose(environment: Readonly<Record<string, string>>): Compose {
  const fill = (text: string): string =>
    text.replace(/\$\$|\$\{(\w+):-([^}]*)\}/g, (whole, name: string | undefined, fallback: string) =>
      name === undefined ? whole.slice(1) : (environment[name] ?? '') || fallback,
    );
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return fill(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, walk(each)]));
  };
  const compose = walk(PARSED) as Compose;
  for (const { environment: variables = {} } of Object.values(compose.services)) {
    const texts = variables as Record<string, string>;
    for (const name of Object.keys(texts)) texts[name] = String(texts[name]);
  }
  return compose;
}
