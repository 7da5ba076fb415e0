import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { Deployment, StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { ConfigMap, Service } from 'kubernetes-types/core/v1.js';
import ts from 'typescript';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig, type VariableName } from '../../src/base/config.js';
import { SETTINGS } from '../../src/base/settings.js';
import { ROOT } from './read-compose.js';

interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const FOLDER = join(ROOT, 'deploy/kubernetes');
const files = readdirSync(FOLDER).filter((name) => name !== 'kustomization.yaml');
const objects = files.flatMap((name) =>
  parseAllDocuments(readFileSync(join(FOLDER, name), 'utf8')).map((document) => document.toJS() as KubernetesObject),
);
const workloads = objects.filter(({ kind }) => /^(StatefulSet|Deployment)$/.test(kind)) as unknown as (
  StatefulSet | Deployment
)[];

function find(kind: string, name: string): unknown {
  return objects.find((each) => each.kind === kind && each.metadata.name === name);
}

const worker = find('StatefulSet', 'payouts-worker') as StatefulSet;

/**
 * What the compiler says of objects compared with `kubernetes-types`: it finds a field that does not exist as well, which
 * most JSON schemas of Kubernetes allow.
 */
function findMistakes(found: readonly KubernetesObject[]): string[] {
  const path = join(ROOT, 'test/deploy/checked-objects.ts');
  const text = found
    .map((object, index) => {
      const { apiVersion, kind } = object;
      const module = `kubernetes-types/${apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`}.js`;
      return `import type { ${kind} as Type${index} } from '${module}';\nexport const object${index}: Type${index} = ${JSON.stringify(object)};\n`;
    })
    .join('');
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: [], lib: ['lib.es2022.d.ts'] },
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
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

it('the manifests fit the API of Kubernetes, where a wrong field would be found', () => {
  const broken = JSON.parse(JSON.stringify(worker).replace('"readinessProbe"', '"readinesProbe"')) as KubernetesObject;
  const mistakes = findMistakes([...objects, broken]);
  expect(mistakes).toHaveLength(1);
  expect(mistakes[0]).toMatch(/readinesProbe/);
});

it('notifications and the HTTP door are off by default', () => {
  const text = readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8');
  const { resources } = parse(text) as { resources: string[] };
  expect([...resources, 'notify.yaml', 'serve.yaml'].sort()).toEqual(files.sort());
});

describe('the worker', () => {
  const { spec } = worker;
  it('keeps its journal on a volume that outlives it', () => {
    expect(spec?.volumeClaimTemplates?.map(({ metadata }) => metadata?.name)).toEqual(['journal']);
    expect(spec?.persistentVolumeClaimRetentionPolicy).toEqual({ whenDeleted: 'Retain', whenScaled: 'Retain' });
    const [container] = spec?.template.spec?.containers ?? [];
    const mounted = container?.volumeMounts?.find(({ name }) => name === 'journal')?.mountPath;
    expect(container?.env).toContainEqual({ name: 'SEND_JOURNAL_DIR', value: mounted });
  });

  it('may take longer to stop than WITHDRAW_TIMEOUT_MS, and alone has the key of the gateway', () => {
    const { WITHDRAW_TIMEOUT_MS } = readConfig(['WITHDRAW_TIMEOUT_MS'], {});
    const seconds = spec?.template.spec?.terminationGracePeriodSeconds ?? 0;
    expect(seconds * 1_000).toBeGreaterThanOrEqual(WITHDRAW_TIMEOUT_MS + 15_000);
    const withKey = workloads.filter((each) => JSON.stringify(each).includes('GATEWAY_SECRET_KEY'));
    expect(withKey.map(({ metadata }) => metadata?.name)).toEqual(['payouts-worker']);
  });
});

it.each(workloads.map((each) => [each.metadata?.name, each.spec] as const))(
  '%s is restricted, and its probes, Service, volumes and variables exist',
  (_name, spec) => {
    const pod = spec?.template.spec;
    const [container] = pod?.containers ?? [];
    expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(container?.securityContext).toEqual({
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    });

    expect(spec?.template.metadata?.labels).toEqual(spec?.selector.matchLabels);
    const ports = container?.ports?.map(({ name }) => name);
    for (const probe of [container?.livenessProbe, container?.readinessProbe]) {
      expect(ports).toContain(probe?.httpGet?.port ?? probe?.tcpSocket?.port);
    }
    const component = (labels: Record<string, string> = {}): unknown => labels['app.kubernetes.io/component'];
    for (const service of objects.filter(({ kind }) => kind === 'Service') as unknown as Service[]) {
      if (component(service.spec?.selector) !== component(spec?.selector.matchLabels)) continue;
      expect(ports).toContain(service.spec?.ports?.[0]?.targetPort);
    }

    const claims = (spec as { volumeClaimTemplates?: { metadata?: { name?: string } }[] }).volumeClaimTemplates ?? [];
    const claimed = claims.map(({ metadata }) => metadata?.name);
    const volumes = [...(pod?.volumes ?? []).map(({ name }) => name), ...claimed];
    expect(container?.volumeMounts?.map(({ name }) => name).sort()).toEqual(volumes.sort());
    const known = Object.values(SETTINGS).map((row) => ('secret' in row ? `${row.variable}_FILE` : row.variable));
    expect(known).toEqual(expect.arrayContaining((container?.env ?? []).map(({ name }) => name)));
  },
);

it('the settings are variables with allowed values', () => {
  const { data = {} } = find('ConfigMap', 'payouts-settings') as ConfigMap;
  expect(() => readConfig(Object.keys(data) as VariableName[], data)).not.toThrow();
});
