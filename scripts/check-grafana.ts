/** What every panel and annotation of docs/grafana-dashboard.json must have, for who reads it in the middle of a night. */
export interface GrafanaDashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly description?: string;
    readonly fieldConfig: { readonly defaults: { readonly unit?: string } };
    readonly links?: readonly { readonly url: string }[];
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly annotations: {
    readonly list: readonly { readonly name: string; readonly enable: boolean; readonly expr: string }[];
  };
}

const ANNOTATIONS = ['Pause', 'Take-over', 'Adoption'];

const SENTENCE = /^[A-Z].*\s.*\s.*\.$/;
const RUNBOOK = /^\$\{runbooks:raw\}\/([a-z-]+)$/;

/**
 * @param runbooks - the pages that exist
 * @returns a line for each rule that is broken
 */
export function checkGrafana({ panels, annotations }: GrafanaDashboard, runbooks: readonly string[]): string[] {
  const ofPanels = panels.flatMap(({ id, title, description = '', fieldConfig, links = [] }, index) => {
    const pages = links.map(({ url }) => RUNBOOK.exec(url)?.[1]);
    return [
      ...(SENTENCE.test(description) ? [] : [`${title} has no sentence (description)`]),
      ...(fieldConfig.defaults.unit ? [] : [`${title} has no unit`]),
      ...(pages.some((page) => page !== undefined && runbooks.includes(page)) ? [] : [`${title} links to no runbook`]),
      ...(panels.findIndex((other) => other.id === id) === index ? [] : [`${title} has the id of another panel`]),
    ];
  });
  const shown = annotations.list.filter(({ enable }) => enable).map(({ name }) => name);
  const missing = ANNOTATIONS.filter((name) => !shown.includes(name));
  return [...ofPanels, ...missing.map((name) => `${name} is no annotation`)].map(
    (problem) => `docs/grafana-dashboard.json: ${problem}`,
  );
}
