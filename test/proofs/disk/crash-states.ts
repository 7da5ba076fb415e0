import fs from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { dirname, resolve as resolvePath } from 'node:path';

export type DiskCall =
  | Readonly<{ kind: 'create'; path: string; inode: number }>
  | Readonly<{ kind: 'write'; inode: number; bytes: Buffer }>
  | Readonly<{ kind: 'sync'; inode: number }>
  | Readonly<{ kind: 'syncFolder'; path: string }>
  | Readonly<{ kind: 'link' | 'rename'; from: string; path: string; inode: number }>
  | Readonly<{ kind: 'remove'; path: string }>;

/**
 * Records the calls of `node:fs/promises` that change a disk, while they are carried out.
 * @param killedAt - the process is killed after so many: what it calls then has no effect and never returns
 */
export function recordDisk(killedAt: number) {
  const calls: DiskCall[] = [];
  const before = { ...fs.promises };
  const handles: FileHandle[] = [];
  let isRevived = false;
  let noteKilled: () => void;
  const killed = new Promise<void>((resolve) => (noteKilled = resolve));

  const live = async () => {
    if (isRevived || calls.length < killedAt) return;
    noteKilled();
    await new Promise(() => undefined);
  };

  const record = (handle: FileHandle, path: string, inode: number) => {
    const sync = (name: 'sync' | 'datasync') => async () => {
      await live();
      const isFolder = (await handle.stat()).isDirectory();
      await handle[name]();
      calls.push(isFolder ? { kind: 'syncFolder', path } : { kind: 'sync', inode });
    };
    const write = async (data: string | Uint8Array) => {
      await live();
      const bytes = Buffer.from(data as Uint8Array);
      const result = await handle.write(bytes);
      calls.push({ kind: 'write', inode, bytes });
      return result;
    };
    const recorded: Readonly<Record<string, unknown>> = { write, sync: sync('sync'), datasync: sync('datasync') };
    return new Proxy(handle, {
      get: (target, name) => {
        if (typeof name === 'string' && name in recorded) return recorded[name];
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
  };

  const move = (kind: 'link' | 'rename') => async (from: string, to: string) => {
    await live();
    await before[kind](from, to);
    calls.push({ kind, from: resolvePath(from), path: resolvePath(to), inode: fs.statSync(to).ino });
  };
  Object.assign(fs.promises, {
    open: async (path: string, ...rest: [flags?: string | number, mode?: number]) => {
      const isNew = !fs.existsSync(path);
      if (isNew) await live();
      const handle = await before.open(path, ...rest);
      handles.push(handle);
      const { ino } = await handle.stat();
      if (isNew) calls.push({ kind: 'create', path: resolvePath(path), inode: ino });
      return record(handle, resolvePath(path), ino);
    },
    link: move('link'),
    rename: move('rename'),
    rm: async (path: string, ...rest: [fs.RmOptions?]) => {
      const isThere = fs.existsSync(path);
      await live();
      await before.rm(path, ...rest);
      if (isThere) calls.push({ kind: 'remove', path: resolvePath(path) });
    },
  });
  syncBuiltinESMExports();

  return {
    ...{ calls, killed },

    revive: () => {
      isRevived = true;
    },

    /** Ends the recording, and closes what a killed process left open. */
    stop: async () => {
      Object.assign(fs.promises, before);
      syncBuiltinESMExports();
      for (const handle of handles) await handle.close().catch(() => undefined);
    },
  };
}

/** With a hole, a file has zeros where a write was lost and a later one was not. */
export type DiskState = Readonly<{ files: ReadonlyMap<string, Buffer>; hasHole: boolean }>;
type Content = Readonly<{ bytes: Buffer; hasHole: boolean }>;
type File = { synced: Buffer; pending: Buffer[] };
export type EarlierFile = Readonly<{ path: string; inode: number; bytes: Buffer }>;

type NameChange = Extract<DiskCall, { kind: 'create' | 'link' | 'rename' | 'remove' }>;

/**
 * Every state in which a crash after the given calls may leave the disk: what was synced is there; of what was written since,
 * what {@link contentsOf} says; of the names that changed since the folder was synced, any selection, as a file system may
 * write them in another order than they were made.
 */
export function* crashStates(before: readonly EarlierFile[], calls: readonly DiskCall[]): Generator<DiskState> {
  const { files, names, pending } = replay(before, calls);
  const inodes = [...files.keys()];
  for (const kept of subsets(pending)) {
    const found = applyNames(names, kept);
    for (const contents of combinations(inodes.map((inode) => contentsOf(files.get(inode))))) {
      const byInode = new Map(inodes.map((inode, index) => [inode, contents[index]?.bytes ?? Buffer.alloc(0)]));
      const bytes = [...found].map(([path, inode]) => [path, byInode.get(inode) ?? Buffer.alloc(0)] as const);
      yield { files: new Map(bytes), hasHole: contents.some(({ hasHole }) => hasHole) };
    }
  }
}

function replay(before: readonly EarlierFile[], calls: readonly DiskCall[]) {
  const files = new Map<number, File>(before.map(({ inode, bytes }) => [inode, { synced: bytes, pending: [] }]));
  let names = new Map(before.map(({ path, inode }) => [path, inode]));
  let pending: NameChange[] = [];
  const fileOf = (inode: number) => {
    const file = files.get(inode);
    if (file === undefined) throw new Error(`a call on inode ${inode}, which was not created`);
    return file;
  };
  for (const call of calls) {
    switch (call.kind) {
      case 'create':
        files.set(call.inode, { synced: Buffer.alloc(0), pending: [] });
        pending.push(call);
        break;
      case 'write':
        fileOf(call.inode).pending.push(call.bytes);
        break;
      case 'sync': {
        const file = fileOf(call.inode);
        file.synced = Buffer.concat([file.synced, ...file.pending]);
        file.pending = [];
        break;
      }
      case 'syncFolder':
        names = applyNames(names, pending);
        pending = pending.filter((change) => dirname(change.path) !== call.path);
        break;
      default:
        pending.push(call);
    }
  }
  return { files, names, pending };
}

function applyNames(before: ReadonlyMap<string, number>, changes: readonly NameChange[]) {
  const names = new Map(before);
  for (const change of changes) {
    if (change.kind === 'remove') names.delete(change.path);
    else names.set(change.path, change.inode);
    if (change.kind === 'rename') names.delete(change.from);
  }
  return names;
}

/**
 * What a file may hold: all that is synced, then some of the writes, the next one torn; or, where the file system wrote them
 * in another order, zeros in the place of all but the last.
 */
function contentsOf(file: File | undefined): Content[] {
  if (file === undefined) return [];
  const { synced, pending } = file;
  return [
    { bytes: synced, hasHole: false },
    ...pending.flatMap((last, index) => {
      const before = Buffer.concat([synced, ...pending.slice(0, index)]);
      const hole = Buffer.alloc(before.length - synced.length);
      return [
        { bytes: Buffer.concat([before, last.subarray(0, last.length >> 1)]), hasHole: false },
        { bytes: Buffer.concat([before, last]), hasHole: false },
        ...(index === 0 ? [] : [{ bytes: Buffer.concat([synced, hole, last]), hasHole: true }]),
      ];
    }),
  ];
}

function* subsets<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let mask = 0; mask < 1 << items.length; mask += 1) yield items.filter((_, index) => (mask >> index) & 1);
}

function* combinations<Item>(choices: readonly (readonly Item[])[]): Generator<Item[]> {
  const [first, ...rest] = choices;
  if (first === undefined) {
    yield [];
    return;
  }
  for (const item of first) for (const others of combinations(rest)) yield [item, ...others];
}
