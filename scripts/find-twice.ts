/**
 * Packages that an application installs twice, because of what other packages need. `overrides` count only in the
 * application's own package.json, so that this package cannot end it: an application may.
 */
const TWICE: Readonly<Record<string, string>> = {
  'mime-types': "axios's form-data takes version 2, Express 5 version 3",
  'mime-db': 'the data of mime-types',
};

/**
 * Of what an application installs.
 * @param packages - of package-lock.json, or of the list that npm keeps in node_modules
 * @returns a problem for each package that is there twice, and for each exception that is none any more
 */
export function findTwice(packages: Readonly<Record<string, { readonly dev?: boolean; readonly version?: string }>>) {
  const versions = new Map<string, string[]>();
  for (const [path, { dev, version = '' }] of Object.entries(packages)) {
    if (path === '' || dev) continue;
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    versions.set(name, [...(versions.get(name) ?? []), version]);
  }
  return [...versions].flatMap(([name, all]): string[] => {
    if (all.length === 1 && name in TWICE) return [`${name} is installed once: remove it from TWICE`];
    if (all.length === 1 || name in TWICE) return [];
    return [`${name} is installed ${all.length} times (${all.join(', ')}): let one version do`];
  });
}
