import { appRoutes, buildHistoryRoutes } from '@bull-board/api/dist/routes.js';

/** A request that Bull Board's own table of routes knows. */
export interface BoardRequest {
  readonly method: string;
  readonly path: string;
}

const ALL_CAPABILITIES = { hasUsage: true, canPurge: true, hasLatency: true };

/** The package's own routes, also those that need a provider of history: a new one in a new version appears by itself. */
const ROUTES = [
  ...appRoutes.api,
  ...buildHistoryRoutes({} as Parameters<typeof buildHistoryRoutes>[0], ALL_CAPABILITIES),
  { method: 'get' as const, route: appRoutes.entryPoint.route },
];

/** Every route with every combination of the given values for its parameters. A parameter without values fails. */
export function listBoardRequests(values: Readonly<Record<string, readonly string[]>>): BoardRequest[] {
  return ROUTES.flatMap(({ method, route }) =>
    [method]
      .flat()
      .flatMap((each) =>
        [route].flat().flatMap((path) => fill(path, values).map((filled) => ({ method: each, path: filled }))),
      ),
  ).map(({ method, path }) => ({ method: method.toUpperCase(), path: `/board${path}` }));
}

function fill(path: string, values: Readonly<Record<string, readonly string[]>>): string[] {
  const parameter = /:([A-Za-z]+)/.exec(path);
  if (parameter === null) return [path];
  const [placeholder, name = ''] = parameter;
  const known = values[name];
  if (known === undefined) throw new Error(`The route ${path} has a parameter that the test does not know: ${name}`);
  return known.flatMap((value) => fill(path.replace(placeholder, encodeURIComponent(value)), values));
}
