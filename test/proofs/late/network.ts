import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { endChild, runChild, startChild } from './children.js';
import { layWire, type BadLine } from './wire.js';

/**
 * Hosts as network namespaces of this machine: each with a kernel's TCP of its own, a host name of its own, and a cable
 * to one switch. Redis and the gateway are at the switch.
 */

/** The switch's own address, where Redis and the gateway listen. */
export const CENTRE = '10.77.0.1';

/** How a host loses its network. */
export type Cut =
  /** Its own cable: its kernel sees that, and tries again every few hundred milliseconds. */
  | 'cable'
  /** Something behind the next switch: its kernel sees nothing, and waits longer each time, up to two minutes. */
  | 'path';

/** Kernel settings of a namespace, below /proc/sys/net/ipv4. */
export type KernelSettings = Readonly<Record<string, number>>;

type Options = SpawnOptions & { readonly env?: Readonly<Record<string, string>> };

export type Network = Awaited<ReturnType<typeof openNetwork>>;
/** Where processes run. */
export type AnyHost = Awaited<ReturnType<Network['openHostBehind']>>;
/** One that can be cut off. */
export type Host = Awaited<ReturnType<Network['openHost']>>;

/** @throws Error that says what is missing, if this machine has no network namespaces for this user */
export async function openNetwork() {
  await requireNamespaces();
  const centre = await openNamespace('centre');
  const inCentre = (...command: string[]) => [...centre.enter, ...command];
  const ip = async (...args: string[]) => runChild(inCentre('ip', ...args));
  await ip('link', 'add', 'switch', 'type', 'bridge');
  await ip('address', 'add', `${CENTRE}/16`, 'dev', 'switch');
  await ip('link', 'set', 'switch', 'up');
  let hosts = 0;
  const nextHost = () => {
    hosts += 1;
    return { index: hosts, address: `10.77.${1 + (hosts >> 8)}.${hosts & 255}` };
  };
  return {
    /** The command, run in the centre. */
    command: inCentre,
    start: (command: readonly string[], options?: Options) => startChild(inCentre(...command), options),

    async openHost(name: string, settings: KernelSettings = {}) {
      const { index, address } = nextHost();
      const cable = `cable${index}`;
      const own = await openNamespace(name);
      const enter = (...command: string[]) => [...own.enter, ...command];
      await ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(own.pid));
      await ip('link', 'set', cable, 'master', 'switch', 'up');
      await runChild(enter('ip', 'address', 'add', `${address}/16`, 'dev', 'eth0'));
      await runChild(enter('ip', 'link', 'set', 'eth0', 'up'));
      for (const [setting, value] of Object.entries(settings)) {
        await runChild(enter('sh', '-c', `echo ${value} > /proc/sys/net/ipv4/${setting}`));
      }
      const plug = (...args: string[]) => inCentre('ip', 'link', 'set', cable, ...args);
      return {
        ...{ name, address, command: enter },
        start: (command: readonly string[], options?: Options) => startChild(enter(...command), options),
        /** The command that cuts it off: at an exact step the process that takes the step runs it. */
        cutCommand: (cut: Cut) => (cut === 'cable' ? plug('down') : plug('nomaster')),
        reconnect: async () => runChild(plug('master', 'switch', 'up')),
        /** Bytes that its kernel still holds for a port of the centre, also of processes that are gone. */
        async unsentTo(port: number) {
          const sockets = await runChild(enter('ss', '-tnH', 'state', 'all', 'dport', '=', `:${port}`));
          const lines = sockets.split('\n').filter((line) => line !== '' && !line.startsWith('SYN-SENT'));
          return lines.reduce((sum, line) => sum + Number(line.trim().split(/\s+/)[2]), 0);
        },
        close: own.close,
      };
    },

    /** A host behind a bad line. */
    async openHostBehind(line: BadLine, name: string) {
      const { index, address } = nextHost();
      const [near, far] = [`near${index}`, `far${index}`];
      const own = await openNamespace(name);
      const enter = (...command: string[]) => [...own.enter, ...command];
      const start = (command: readonly string[], stdio: 'ignore' | 'pipe') =>
        startChild(inCentre(...command), { stdio });
      const wire = await layWire([near, far], line, { inCentre, start });
      await ip('link', 'set', near, 'up');
      await ip('route', 'add', `${address}/32`, 'dev', near);
      await ip('link', 'set', far, 'netns', String(own.pid));
      await runChild(enter('ip', 'address', 'add', `${address}/32`, 'dev', far));
      await runChild(enter('ip', 'link', 'set', far, 'up'));
      await runChild(enter('ip', 'route', 'add', `${CENTRE}/32`, 'dev', far));
      return {
        ...{ name, address, command: enter },
        start: (command: readonly string[], options?: Options) => startChild(enter(...command), options),
        async close() {
          await wire.close();
          await own.close();
        },
      };
    },

    close: centre.close,
  };
}

/** It lives as long as the process that stays in it. */
async function openNamespace(name: string) {
  const keeper = startChild(
    ['unshare', '--net', '--uts', 'sh', '-c', `hostname ${name} && ip link set lo up && echo open && exec cat`],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  await untilOpen(keeper);
  const { pid = 0 } = keeper;
  return {
    pid,
    enter: ['nsenter', '--target', String(pid), '--net', '--uts', '--'],
    close: async () => endChild(keeper),
  };
}

async function untilOpen(keeper: ChildProcess) {
  let said = '';
  keeper.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const opened = await Promise.race([
    once(keeper.stdout ?? keeper, 'data').then(() => true),
    once(keeper, 'exit').then(() => false),
  ]);
  if (!opened) throw new Error(`a network namespace could not be opened: ${said.trim()}`);
}

const TOOLS = ['setpriv', 'unshare', 'nsenter', 'ip', 'ss', 'socat'];

async function requireNamespaces() {
  try {
    for (const tool of TOOLS) await runChild(['sh', '-c', `command -v ${tool}`]);
    await runChild(['unshare', '--net', '--uts', 'true']);
  } catch (error) {
    throw new Error(
      'The proofs of late requests need network namespaces: run them as root on Linux, ' +
        `with ${TOOLS.join(', ')} of util-linux, iproute2 and socat (${(error as Error).message}).`,
    );
  }
}
