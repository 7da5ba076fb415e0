import fs from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { resolve } from 'node:path';

/** A system call that changes what is on disk, or makes it last. Paths are absolute; files are known by their inode. */
export type DiskCall =
  | { readonly kind: 'create'; readonly path: string; readonly inode: number }
  | { readonly kind: 'write'; readonly inode: number; readonly bytes: Buffer }
  | { readonly kind: 'sync'; readonly inode: number }
  | { readonly kind: 'syncFolder'; readonly path: string }
  | { readonly kind: 'link' | 'rename'; readonly from: string; readonly path: string; readonly inode: number }
  | { readonly kind: 'remove'; readonly path: string };

type Patched = Pick<typeof fs.promises, 'open' | 'link' | 'rename' | 'rm'>;

/** Records the calls of `node:fs/promises` that change a disk, while they are carried out. */
export class RecordedFs {
  readonly calls: DiskCall[] = [];
  readonly #before: Patched = { ...fs.promises };
  readonly #open: FileHandle[] = [];
  #killedAt = Infinity;
  #noteKilled: () => void = () => undefined;

  killed = new Promise<void>(() => undefined);

  /** The process is killed after this many calls: what it calls then has no effect and never returns. */
  killAfter(calls: number): void {
    this.#killedAt = calls;
    this.killed = new Promise((resolve) => {
      this.#noteKilled = resolve;
    });
  }

  revive(): void {
    this.#killedAt = Infinity;
  }

  start(): void {
    const { open, link, rename, rm } = this.#before;
    const move = (kind: 'link' | 'rename', make: Patched['link']) => async (from: string, to: string) => {
      await this.#live();
      await make(from, to);
      this.calls.push({ kind, from: resolve(from), path: resolve(to), inode: fs.statSync(to).ino });
    };
    Object.assign(fs.promises, {
      open: async (path: string, ...rest: [flags?: string | number, mode?: number]) => {
        const isNew = !fs.existsSync(path);
        if (isNew) await this.#live();
        const handle = await open(path, ...rest);
        this.#open.push(handle);
        const { ino } = await handle.stat();
        if (isNew) this.calls.push({ kind: 'create', path: resolve(path), inode: ino });
        return this.#record(handle, { path: resolve(path), inode: ino });
      },
      link: move('link', link),
      rename: move('rename', rename),
      rm: async (path: string, ...rest: [fs.RmOptions?]) => {
        const isThere = fs.existsSync(path);
        await this.#live();
        await rm(path, ...rest);
        if (isThere) this.calls.push({ kind: 'remove', path: resolve(path) });
      },
    });
    syncBuiltinESMExports();
  }

  /** Ends the recording, and closes what a killed process left open. */
  async stop(): Promise<void> {
    Object.assign(fs.promises, this.#before);
    syncBuiltinESMExports();
    for (const handle of this.#open) await handle.close().catch(() => undefined);
  }

  async #live(): Promise<void> {
    if (this.calls.length < this.#killedAt) return;
    this.#noteKilled();
    await new Promise(() => undefined);
  }

  #record(handle: FileHandle, { path, inode }: { readonly path: string; readonly inode: number }): FileHandle {
    const { calls } = this;
    const sync = (name: 'sync' | 'datasync') => async (): Promise<void> => {
      await this.#live();
      const isFolder = (await handle.stat()).isDirectory();
      await handle[name]();
      calls.push(isFolder ? { kind: 'syncFolder', path } : { kind: 'sync', inode });
    };
    const recorded: Readonly<Record<string, unknown>> = {
      write: async (data: string | Uint8Array) => {
        await this.#live();
        const bytes = Buffer.from(data as Uint8Array);
        const result = await handle.write(bytes);
        calls.push({ kind: 'write', inode, bytes });
        return result;
      },
      sync: sync('sync'),
      datasync: sync('datasync'),
    };
    return new Proxy(handle, {
      get: (target, name) => {
        if (typeof name === 'string' && name in recorded) return recorded[name];
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
  }
}
