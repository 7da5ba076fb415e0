import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { parseAllDocuments } from 'yaml';
import { ROOT } from './read-compose.js';

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const FOLDER = join(ROOT, 'deploy/kubernetes');

/** Every object of deploy/kubernetes, by file; the kustomization is no object of the cluster. */
export function readObjects(): Readonly<Record<string, readonly KubernetesObject[]>> {
  const files = readdirSync(FOLDER).filter((name) => name !== 'kustomization.yaml');
  return Object.fromEntries(
    files.map((name) => [
      name,
      parseAllDocuments(readFileSync(join(FOLDER, name), 'utf8')).map((document) => {
        if (document.errors.length > 0) throw new Error(`${name}: ${document.errors.join(', ')}`);
        return document.toJS() as KubernetesObject;
      }),
    ]),
  );
}

/**
 * Compares objects with the API of Kubernetes as `kubernetes-types` has it, through the compiler: a field that does not exist
 * is found as well, which most JSON schemas of Kubernetes allow.
 * @returns what the compiler says of each, one line each
 */
export function findMistakes(objects: readonly KubernetesObject[]): string[][] {
  const path = join(ROOT, 'test/deploy/support/checked-objects.ts');
  const text = objects
    .map((object, index) => {
      const { apiVersion, kind } = object;
      const module = `kubernetes-types/${apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`}.js`;
      return `import type { ${kind} as Type${index} } from '${module}';\nexport const object${index}: Type${index} = ${JSON.stringify(object)};\n`;
    })
    .join('');
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    lib: ['lib.es2022.d.ts'],
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  };
  const host = ts.createCompilerHost(options);
  const checked = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022);
  const program = ts.createProgram([path], options, {
    ...host,
    fileExists: (name) => name === path || host.fileExists(name),
    getSourceFile: (name, language) => (name === path ? checked : host.getSourceFile(name, language)),
  });
  const said: string[][] = objects.map(() => []);
  for (const { messageText, file, start = 0 } of ts.getPreEmitDiagnostics(program)) {
    const line = file?.fileName === path ? checked.getLineAndCharacterOfPosition(start).line : 0;
    // Two lines an object.
    said[Math.floor(line / 2)]?.push(ts.flattenDiagnosticMessageText(messageText, ' '));
  }
  return said;
}
