import { fork, type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export function print(text: string) {
  process.stdout.write(`${text}\n`);
}

export const FLAG = { type: 'boolean', default: false } as const;
export const TEXT = { type: 'string' } as const;

export function report(passed: number, failed: number) {
  print(`${passed} passed, ${failed} failed`);
  return failed === 0;
}

export const secondsSince = (startedAt: number) => (performance.now() - startedAt) / 1_000;

export function wholeNumber(text: string, usage: string) {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${text} is not a whole number\n${usage}`);
  return Number(text);
}

export function exitOnSignals() {
  process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));
}

/** @param runTask - a child process of {@link runTasks} runs its tasks instead of the command */
export async function runCommand(
  main: () => Promise<boolean>,
  usage: string,
  isHelp: boolean,
  runTask?: (task: never) => Promise<unknown>,
): Promise<void> {
  if (runTask !== undefined && process.send !== undefined) serveTasks(runTask);
  else if (isHelp) print(usage);
  else process.exitCode = (await main()) ? 0 : 1;
}

interface TaskProgram<Task, Result> {
  readonly url: string;
  readonly run: (task: Task) => Promise<Result>;
}

/** Runs tasks in child processes, one on each processor. @throws Error when a child ended before it had done its task */
export async function runTasks<Task, Result>(
  program: TaskProgram<Task, Result>,
  tasks: Iterable<Task>,
  onResult: (result: Result, task: Task) => void,
): Promise<void> {
  const iterator = tasks[Symbol.iterator]();
  const children = Array.from({ length: availableParallelism() }, () =>
    fork(fileURLToPath(program.url), { execArgv: ['--import', 'tsx'] }),
  );
  try {
    await Promise.all(children.map(async (child) => feed(child, iterator, onResult)));
  } finally {
    for (const child of children) child.kill();
  }
}

async function feed<Task>(child: ChildProcess, tasks: Iterator<Task>, onResult: (result: never, task: Task) => void) {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a child process ended with ${String(code)} before its task was done`);
  });
  ended.catch(() => undefined);
  for (let next = tasks.next(); next.done !== true; next = tasks.next()) {
    const replied = once(child, 'message');
    child.send({ task: next.value });
    const [{ result }] = (await Promise.race([replied, ended])) as [{ result: never }];
    onResult(result, next.value);
  }
}

export function serveTasks(run: (task: never) => Promise<unknown>) {
  process.on('message', ({ task }: { task: never }) => {
    void run(task).then((result) => process.send?.({ result }));
  });
  process.once('disconnect', () => process.exit());
}

export async function plantEach<Planted>(
  chosen: readonly Planted[],
  nameOf: (planted: Planted) => string,
  find: (planted: Planted) => Promise<string | undefined>,
): Promise<boolean> {
  let missed = 0;
  for (const planted of chosen) {
    const startedAt = performance.now();
    const found = await find(planted);
    if (found === undefined) missed += 1;
    const seconds = secondsSince(startedAt).toFixed(0).padStart(4);
    print(`${nameOf(planted).padEnd(56)} ${seconds} s  ${found ?? 'NOT FOUND'}`);
  }
  return report(chosen.length - missed, missed);
}

export interface SourceChange {
  readonly file: string;
  readonly edits: readonly (readonly [find: string, replace: string])[];
}

export const program = (...args: string[]) => ['--import', 'tsx', ...args];

export const jest = (file: string) => ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', file];

export const slowJest = (file: string) => [...jest(file), '--config', 'jest.slow.config.js', '--verbose'];

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** @returns what a proof or test prints in a copy of the project with a change. @param args - {@link program}, {@link jest} */
export async function runInCopy({ file, edits }: SourceChange, args: readonly string[]) {
  const dir = await mkdtemp(join(tmpdir(), 'payout-queue-planted-'));
  try {
    for (const name of ['src', 'test', 'package.json', 'tsconfig.json', 'jest.config.js', 'jest.slow.config.js']) {
      await cp(join(ROOT, name), join(dir, name), { recursive: true });
    }
    await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
    await plant(join(dir, 'src', file), edits);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: dir }).catch(
      (error: unknown) => error as { stdout: string; stderr: string },
    );
    return stdout + stderr;
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function plant(path: string, edits: SourceChange['edits']) {
  await writeFile(path, await editedText(path, edits));
}

async function editedText(path: string, edits: SourceChange['edits']) {
  let text = await readFile(path, 'utf8');
  for (const [find, replace] of edits) {
    if (text.split(find).length !== 2) throw new Error(`${path} does not have this text exactly once: ${find}`);
    text = text.replace(find, () => replace);
  }
  return text;
}

/** Whether each change still fits its source, which moves on. */
export async function checkChanges(changes: readonly SourceChange[]): Promise<boolean> {
  let missed = 0;
  for (const { file, edits } of changes) {
    await editedText(join(ROOT, 'src', file), edits).catch((error: unknown) => {
      missed += 1;
      print((error as Error).message);
    });
  }
  return report(changes.length - missed, missed);
}
