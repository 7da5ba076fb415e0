import { setTimeout as delay } from 'node:timers/promises';
import type { Gateway } from './gateway.js';
import type { Users } from './users.js';
import type { Fault, Target } from './plan.js';
import type { RedisServer } from './redis-server.js';
import type { TcpProxy } from './tcp-proxy.js';
import type { WorkerHost } from './worker-host.js';

/** What faults can strike. */
export interface Stage {
  readonly hosts: readonly WorkerHost[];
  /** Each host's way to Redis. */
  readonly links: readonly TcpProxy[];
  readonly redis: RedisServer;
  readonly gateway: Gateway;
  readonly users: Users;
}

/** Lets one fault happen and end. */
export async function strike(fault: Fault, stage: Stage): Promise<void> {
  const { redis, gateway, users } = stage;
  switch (fault.kind) {
    case 'worker-kill':
    case 'worker-end': {
      const host = await findHost(fault.target, stage);
      await (fault.kind === 'worker-kill' ? host.kill() : host.endInGoodOrder());
      await delay(fault.backAfterMs);
      host.startAgain();
      return;
    }
    case 'worker-stop': {
      const host = await findHost(fault.target, stage);
      host.stop();
      await delay(fault.forMs);
      host.continue();
      return;
    }
    case 'redis-kill':
      await redis.killFor(fault.downMs);
      return;
    case 'redis-cut-off':
      await redis.cutOff(fault.downMs, fault.bytes);
      users.askAgain();
      return;
    case 'redis-older':
      await redis.putBack(fault.downMs);
      users.askAgain();
      return;
    case 'link-delay':
    case 'link-cut':
    case 'link-blackhole':
      await troubleLinks(fault, stage);
      return;
    case 'gateway-stop':
      gateway.stop();
      await delay(fault.forMs);
      gateway.continue();
      return;
    case 'gateway-hold':
      await gateway.holdResponses();
      await delay(fault.forMs);
      await gateway.releaseResponses();
      return;
  }
}

async function troubleLinks(fault: Extract<Fault, { links: readonly number[] }>, stage: Stage): Promise<void> {
  const links = stage.links.filter((_, worker) => fault.links.includes(worker));
  for (const link of links) {
    if (fault.kind === 'link-cut') link.cut();
    else if (fault.kind === 'link-delay') link.slowDown(() => Math.random() * fault.maxMs);
    else link.silence(fault.direction === 'both' ? ['requests', 'replies'] : [fault.direction]);
  }
  await delay(fault.forMs);
  for (const link of links) link.heal(fault.kind === 'link-blackhole' ? fault.ends : 'late');
}

async function findHost({ sender, worker }: Target, { hosts, users }: Stage): Promise<WorkerHost> {
  const owner = sender ? (await users.readStats())?.sender?.owner : undefined;
  const host = hosts.find(({ pid }) => owner?.includes(`:${String(pid)}:`)) ?? hosts[worker];
  if (host === undefined) throw new Error(`There is no worker ${worker}`);
  return host;
}

/** In words, for the line of a round and its trace. */
export function describeFault(fault: Fault): string {
  return Object.entries(fault)
    .map(([name, value]) => (name === 'kind' ? String(value) : `${name}=${describeValue(value)}`))
    .join(' ');
}

function describeValue(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return String(value);
  const { sender, worker } = value as Target;
  return sender ? `sender|${worker}` : String(worker);
}
