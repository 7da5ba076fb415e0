import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Deployment, StatefulSet } from 'kubernetes-types/apps/v1.js';
import type { ConfigMap, Service } from 'kubernetes-types/core/v1.js';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig, type VariableName } from '../../src/base/config.js';
import { SETTINGS } from '../../src/base/settings.js';
import { findMistakes, readObjects, type KubernetesObject } from './support/kubernetes-objects.js';
import { ROOT } from './support/read-compose.js';

const files = readObjects();
const objects = Object.values(files).flat();
const workloads = objects.filter((each) => /^(StatefulSet|Deployment)$/.test(each.kind)) as unknown as (
  StatefulSet | Deployment
)[];

function find(kind: string, name: string): unknown {
  const found = objects.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

/** Not of the kustomization as it is. */
const OPTIONAL = ['notify.yaml', 'serve.yaml'];

const worker = find('StatefulSet', 'payouts-worker') as StatefulSet;

describe('the manifests', () => {
  const MISTAKES = [
    ['a field that does not exist', '"readinessProbe"', '"readinesProbe"', /readinesProbe/],
    ['a text instead of a number', '"containerPort":9464', '"containerPort":"9464"', /string/],
    ['a field at the wrong place', '"volumeMounts":[', '"volumes":[', /volumes\W+does not exist/],
    ['a field that is missing', '"serviceName":"payouts-worker",', '', /serviceName/],
  ] as const;
  /** All in one run of the compiler, which takes long: what is, and each mistake in a copy of the worker. */
  let found: readonly string[][];
  beforeAll(() => {
    const text = JSON.stringify(worker);
    const broken = MISTAKES.map(([, from, to]) => {
      expect(text).toContain(from);
      return JSON.parse(text.replace(from, to)) as KubernetesObject;
    });
    const mistakes = findMistakes([...objects, ...broken]);
    found = [mistakes.slice(0, objects.length).flat(), ...mistakes.slice(objects.length)];
  });

  it('fit the API of Kubernetes', () => {
    expect(found[0]).toEqual([]);
  });

  it.each(MISTAKES.map(([what, , , mistake], index) => [what, mistake, index + 1] as const))(
    'are checked: %s is found',
    (_what, mistake, index) => {
      expect(found[index]?.join('\n')).toMatch(mistake);
    },
  );

  it('are what kubectl builds of the kustomization, where it is installed', () => {
    const { status, stdout, error } = spawnSync('kubectl', ['kustomize', `${ROOT}deploy/kubernetes`], {
      encoding: 'utf8',
    });
    if (error !== undefined) return;
    expect(status).toBe(0);
    const built = parseAllDocuments(stdout).map((each) => (each.toJS() as KubernetesObject).kind);
    const listed = Object.entries(files).flatMap(([name, each]) => (OPTIONAL.includes(name) ? [] : each));
    expect(built.sort()).toEqual(listed.map(({ kind }) => kind).sort());
  });
});

it('notifications and the HTTP door are off by default', () => {
  const { resources } = parse(readFileSync(`${ROOT}deploy/kubernetes/kustomization.yaml`, 'utf8')) as {
    resources: string[];
  };
  expect([...resources, ...OPTIONAL].sort()).toEqual(Object.keys(files).sort());
});

describe('the worker', () => {
  it('keeps its journal on a volume that outlives it', () => {
    const { volumeClaimTemplates = [], persistentVolumeClaimRetentionPolicy } = worker.spec ?? {};
    expect(volumeClaimTemplates.map(({ metadata }) => metadata?.name)).toEqual(['journal']);
    expect(persistentVolumeClaimRetentionPolicy).toEqual({ whenDeleted: 'Retain', whenScaled: 'Retain' });
    const [container] = worker.spec?.template.spec?.containers ?? [];
    const mounted = container?.volumeMounts?.find(({ name }) => name === 'journal')?.mountPath;
    expect(container?.env).toContainEqual({ name: 'SEND_JOURNAL_DIR', value: mounted });
  });

  it('may take longer to stop than WITHDRAW_TIMEOUT_MS', () => {
    const { WITHDRAW_TIMEOUT_MS } = readConfig(['WITHDRAW_TIMEOUT_MS'], {});
    const seconds = worker.spec?.template.spec?.terminationGracePeriodSeconds ?? 0;
    expect(seconds * 1_000).toBeGreaterThanOrEqual(WITHDRAW_TIMEOUT_MS + 15_000);
  });

  it('alone has the key of the gateway', () => {
    const withKey = workloads.filter((each) => JSON.stringify(each).includes('GATEWAY_SECRET_KEY'));
    expect(withKey.map(({ metadata }) => metadata?.name)).toEqual(['payouts-worker']);
  });
});

describe.each(workloads.map((each): [string, StatefulSet | Deployment] => [each.metadata?.name ?? '', each]))(
  '%s',
  (_name, { spec }) => {
    const pod = spec?.template.spec;
    const [container] = pod?.containers ?? [];

    it('runs under the restricted security standard, with probes', () => {
      expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(container?.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container).toHaveProperty('livenessProbe');
      expect(container).toHaveProperty('readinessProbe');
    });

    it('selects its own pods, and its probes and Service a port that it has', () => {
      expect(spec?.template.metadata?.labels).toEqual(spec?.selector.matchLabels);
      const ports = container?.ports?.map(({ name }) => name);
      for (const probe of [container?.livenessProbe, container?.readinessProbe]) {
        expect(ports).toContain(probe?.httpGet?.port ?? probe?.tcpSocket?.port);
      }
      for (const service of objects.filter(({ kind }) => kind === 'Service') as unknown as Service[]) {
        const component = (each: Record<string, string> = {}): string | undefined =>
          each['app.kubernetes.io/component'];
        if (component(service.spec?.selector) !== component(spec?.selector.matchLabels)) continue;
        expect(ports).toContain(service.spec?.ports?.[0]?.targetPort);
      }
    });

    it('mounts each volume that it names, and sets only variables that exist', () => {
      const claims = (spec as { volumeClaimTemplates?: { metadata?: { name?: string } }[] }).volumeClaimTemplates ?? [];
      const volumes = [
        ...(pod?.volumes ?? []).map(({ name }) => name),
        ...claims.map(({ metadata }) => metadata?.name),
      ];
      expect(container?.volumeMounts?.map(({ name }) => name).sort()).toEqual(volumes.sort());
      const known = Object.values(SETTINGS).flatMap((row) =>
        'secret' in row ? [`${row.variable}_FILE`] : row.variable,
      );
      for (const { name } of container?.env ?? []) expect(known).toContain(name);
    });
  },
);

it('the settings are variables with allowed values', () => {
  const { data = {} } = find('ConfigMap', 'payouts-settings') as ConfigMap;
  expect(() => readConfig(Object.keys(data) as VariableName[], data)).not.toThrow();
});
