import { readFileSync } from 'node:fs';
import { sourcePath } from './source-path.cjs';

export function readVersion(): string {
  const manifest = readFileSync(sourcePath('../package.json'), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
