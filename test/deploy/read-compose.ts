import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
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

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

/** docker-compose.yml as compose reads it with this environment: `${NAME:-default}` filled in, `$$` as `$`. */
export function readCompose(given: Readonly<Record<string, string>>): Compose {
  const fill = (text: string): string =>
    text.replace(/\$\$|\$\{(\w+):-([^}]*)\}/g, (whole, name: string | undefined, fallback: string) =>
      name === undefined ? whole.slice(1) : (given[name] ?? '') || fallback,
    );
  const compose = JSON.parse(JSON.stringify(PARSED), (_, value: unknown) =>
    typeof value === 'string' ? fill(value) : value,
  ) as Compose;
  for (const { environment = {} } of Object.values(compose.services)) {
    const texts = environment as Record<string, string>;
    for (const name of Object.keys(texts)) texts[name] = String(texts[name]);
  }
  return compose;
}
