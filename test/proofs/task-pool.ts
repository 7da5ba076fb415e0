import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

export interface TaskProgram<Task, Result> {
  readonly url: string;
  readonly run: (task: Task) => Promise<Result>;
}

/**
 * Runs tasks in child processes, one on each processor.
 * @param tasks - taken one after the other; as JSON they fit into a message
 * @param onResult - told of each result as it comes, in no order
 * @throws Error when a child ended before it had done its task
 */
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

async function feed<Task>(
  child: ChildProcess,
  tasks: Iterator<Task>,
  onResult: (result: never, task: Task) => void,
): Promise<void> {
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

/** Does tasks in a child process of {@link runTasks}, one at a time, until the parent ends. */
export function serveTasks(run: (task: never) => Promise<unknown>): void {
  process.on('message', ({ task }: { task: never }) => {
    void run(task).then((result) => process.send?.({ result }));
  });
  process.once('disconnect', () => process.exit());
}
