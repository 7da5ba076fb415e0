import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterTest, folderOfTest } from '../../worker/support/close-after-test.js';

const PATHS = (process.env['PATH'] ?? '').split(delimiter);
const LONGEST_MS = 600_000;
/** The npm that comes with the Node of the image. */
const NPM = '11.6.2';
/** Of this machine, for the registry. */
const CERTIFICATES = '/etc/ssl/certs';

export const missingTools = ['buildah', 'debootstrap'].filter(
  (tool) => !PATHS.some((path) => existsSync(join(path, tool))),
);

/** @returns what it wrote to stdout */
function run(program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): string {
  const limits = { timeout: LONGEST_MS, maxBuffer: 100_000_000, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(program, args, { ...limits, env: { ...process.env, ...environment } });
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.join(' ')} ended with ${status}: ${`${stdout}${stderr}`.slice(-4_000)}`);
}

/** What an image says of how it runs. */
interface ImageConfig {
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly Healthcheck: { readonly Test: readonly string[] };
}

/**
 * Builds images by buildah, without a daemon and without a registry of images. In place of the image that a Dockerfile
 * begins with there is one of the same parts: that release of Debian, from its own packages, that version of Node, from
 * npm's registry, and a user `node`. So nothing here shows that the pinned image exists.
 */
export async function openImageBuilder() {
  const dir = await folderOfTest('images');
  const [storage, npmrc] = [join(dir, 'storage.conf'), join(dir, 'npmrc')];
  const place = `runroot = "${dir}/run"\ngraphroot = "${dir}/storage"`;
  writeFileSync(storage, `[storage]\ndriver = "overlay"\n${place}\n`);
  const registry = run('npm', ['config', 'get', 'registry']).trim();
  writeFileSync(npmrc, `registry=${registry}\ncafile=${CERTIFICATES}/ca-certificates.crt\n`);
  const environment = { CONTAINERS_STORAGE_CONF: storage, BUILDAH_ISOLATION: 'chroot' };
  const buildah = (...args: readonly string[]) => run('buildah', args, environment);
  afterTest(() => {
    // Mounts would keep the folder busy.
    buildah('rm', '--all');
    buildah('rmi', '--all', '--force');
  });
  return {
    environment,
    /** @param dockerfile - its path, @param context - its folder. @returns a container, and how it runs */
    build(dockerfile: string, base: string, context: string) {
      buildah('from', '--name', 'base', 'scratch');
      buildah('add', '--quiet', 'base', makeBaseFiles(base), '/');
      buildah('config', '--env', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'base');
      buildah('commit', '--quiet', 'base', 'localhost/base');
      const mounts = [`${npmrc}:/root/.npmrc:ro`, `${CERTIFICATES}:${CERTIFICATES}:ro`];
      const asBase = ['--pull-never', '--build-context', `${base}=container-image://localhost/base`];
      const options = [...asBase, ...mounts.flatMap((mount) => ['--volume', mount]), '--file', dockerfile];
      buildah('bud', '--quiet', '--format', 'docker', ...options, '--tag', 'localhost/payouts', context);
      buildah('from', '--pull-never', '--name', 'payouts', 'localhost/payouts');
      const { Docker } = JSON.parse(buildah('inspect', 'payouts')) as { Docker: { config: ImageConfig } };
      return { container: 'payouts', config: Docker.config };
    },
  };
}

/** @returns the folder of its files, which is kept in a cache */
function makeBaseFiles(image: string): string {
  const [, version = '', release = ''] = /^node:([\d.]+)-(\w+)-slim@/.exec(image) ?? [];
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'payout-queue');
  const [files, begun] = [join(cache, `image-${version}-${release}`), join(cache, `image-${version}-${process.pid}`)];
  if (existsSync(files)) return files;
  mkdirSync(cache, { recursive: true });
  run('debootstrap', ['--variant=minbase', release, begun]);
  rmSync(join(begun, 'var/cache/apt'), { recursive: true });
  const local = join(begun, 'usr/local');
  const bin = run('node', ['scripts/test-on-node.mjs', version, '--folder']).trim();
  cpSync(join(bin, 'node'), join(local, 'bin/node'));
  run('npm', ['install', '--global', '--prefix', local, '--no-audit', '--no-fund', '--silent', `npm@${NPM}`]);
  run('chroot', [begun, 'useradd', '--uid', '1000', '--user-group', '--create-home', 'node']);
  renameSync(begun, files);
  return files;
}
