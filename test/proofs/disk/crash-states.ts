import { dirname } from 'node:path';
import type { DiskCall } from './recorded-fs.js';

export interface DiskState {
  readonly files: ReadonlyMap<string, Buffer>;
  /** A file has zeros where a write was lost and a later one was not. */
  readonly hasHole: boolean;
}

interface Content {
  readonly bytes: Buffer;
  readonly hasHole: boolean;
}

/** A file that was there, and on disk, before the first call. */
export interface EarlierFile {
  readonly path: string;
  readonly inode: number;
  readonly bytes: Buffer;
}

interface File {
  synced: Buffer;
  pending: Buffer[];
}

type NameChange = Extract<DiskCall, { kind: 'create' | 'link' | 'rename' | 'remove' }>;

/**
 * Every state in which a crash after the given calls may leave the disk: what was synced is there; of what was written
 * since, any number of writes from the first on, the last of them perhaps torn or the only one; of the names that changed since the folder was
 * synced, any selection (a file system may write them in another order than they were made).
 */
export function* crashStates(before: readonly EarlierFile[], calls: readonly DiskCall[]): Generator<DiskState> {
  const { files, names, pending } = replay(before, calls);
  const inodes = [...files.keys()];
  for (const kept of subsets(pending)) {
    const found = applyNames(names, kept);
    for (const contents of combinations(inodes.map((inode) => contentsOf(files.get(inode))))) {
      const byInode = new Map(inodes.map((inode, index) => [inode, contents[index]?.bytes ?? Buffer.alloc(0)]));
      const bytes = [...found].map(([path, inode]): [string, Buffer] => [path, byInode.get(inode) ?? Buffer.alloc(0)]);
      yield { files: new Map(bytes), hasHole: contents.some(({ hasHole }) => hasHole) };
    }
  }
}

function replay(
  before: readonly EarlierFile[],
  calls: readonly DiskCall[],
): { files: Map<number, File>; names: Map<string, number>; pending: NameChange[] } {
  const files = new Map(before.map(({ inode, bytes }): [number, File] => [inode, { synced: bytes, pending: [] }]));
  let names = new Map(before.map(({ path, inode }) => [path, inode]));
  let pending: NameChange[] = [];
  const fileOf = (inode: number): File => {
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

function applyNames(before: ReadonlyMap<string, number>, changes: readonly NameChange[]): Map<string, number> {
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
