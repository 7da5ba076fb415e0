// Bundles an application with each bundler, and runs the one file in a folder where no package is installed.
import { deepEqual, match } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { startLocalRedis } from 'payout-queue/local-redis';
import { startSandbox } from 'payout-queue/sandbox';
import TerserPlugin from 'terser-webpack-plugin';
import webpack from 'webpack';

const esbuild = async (outfile, more) =>
  build({
    entryPoints: ['pay.js'],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile,
    logLevel: 'error',
    banner,
    ...more,
  });

const BUNDLERS = {
  esbuild: async (outfile) => esbuild(outfile, {}),
  'esbuild, minified': async (outfile) => esbuild(outfile, { minify: true, keepNames: true }),
  'esbuild, with other class names': async (outfile) => esbuild(outfile, { minify: true }),
  async webpack(outfile) {
    const [path, filename] = [join(outfile, '..'), outfile.split('/').at(-1)];
    const stats = await promisify(webpack)({
      ...{ entry: './pay.js', mode: 'production', target: 'node22', experiments: { outputModule: true } },
      optimization: { minimizer: [new TerserPlugin({ terserOptions: { keep_classnames: true, keep_fnames: true } })] },
      output: { path, filename, module: true, chunkFormat: 'module' },
    });
    if (stats.hasErrors()) throw new Error(stats.toString('errors-only'));
  },
};
/** Packages of CommonJS in a bundle of ES modules require Node's own modules. */
const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };

const folder = await mkdtemp(join(tmpdir(), 'bundles-'));
const redis = await startLocalRedis();
const accounts = Object.keys(BUNDLERS).map((_, index) => ({ platformId: 4242 + index, secretKey: 'k-sandbox-only' }));
const sandbox = await startSandbox({ accounts, settleAfterMs: 50 });
try {
  for (const [index, [name, bundle]] of Object.entries(BUNDLERS).entries()) {
    const outfile = join(folder, `${index}.mjs`);
    await bundle(outfile);
    const args = [outfile, redis.url, sandbox.url, String(accounts[index].platformId)];
    // The message of a failure would have the bundle's one line in it.
    const { stdout } = await promisify(execFile)('node', args, { cwd: folder }).catch(({ stdout }) => ({ stdout }));
    const isRenamed = name.includes('other class names');
    const expected = isRenamed ? /the bundler: has renamed classes/ : /^InvalidInputError completed$/;
    match(stdout, expected, name);
    deepEqual(sandbox.payments(accounts[index].platformId).length, isRenamed ? 0 : 1);
  }
} finally {
  await sandbox.close();
  await redis.stop();
  await rm(folder, { recursive: true });
}
