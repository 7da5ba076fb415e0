import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly action: string; readonly runbook: string };
}

export const ALERTS_PATH = fileURLToPath(new URL('../../../docs/alerts.yml', import.meta.url));

const { groups } = parse(readFileSync(ALERTS_PATH, 'utf8')) as { groups: { name: string; rules: AlertRule[] }[] };

/** The rules of docs/alerts.yml. */
export const alertRules: readonly AlertRule[] = groups.flatMap(({ rules }) => rules);
