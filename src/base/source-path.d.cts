/**
 * The path of a file that an application which bundles the package does not have: an example, a runbook.
 * @param path - from `src`, or from `dist` in the built package
 */
export declare function sourcePath(path: string): string;

/**
 * The text of a file that is not TypeScript: a Lua script, an asset, the manifest.
 * @param path - as for {@link sourcePath}
 */
export declare function readSource(path: string): string;
