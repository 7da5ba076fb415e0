/**
 * The path of a file that is not TypeScript: a Lua script, an asset, the manifest.
 * @param path - from `src`, or from `dist` in the built package
 */
export declare function sourcePath(path: string): string;
