/** What is used of the packages that only `npm run bench` installs, so that everything is checked without them. */

declare module 'bottleneck' {
  export default class Bottleneck {
    constructor(options: { readonly maxConcurrent: number; readonly minTime: number });
    schedule<Result>(work: () => Promise<Result>): Promise<Result>;
  }
}

declare module 'p-throttle' {
  export default function pThrottle(options: {
    readonly limit: number;
    readonly interval: number;
  }): <Argument, Result>(work: (argument: Argument) => Promise<Result>) => (argument: Argument) => Promise<Result>;
}

declare module 'p-queue' {
  export default class PQueue {
    constructor(options: { readonly concurrency: number; readonly interval: number; readonly intervalCap: number });
    add<Result>(work: () => Promise<Result>): Promise<Result>;
  }
}

declare module 'cli-table3' {
  type Cell = string | { readonly content: string; readonly hAlign: 'right' };

  export default class Table {
    constructor(options: { readonly head: readonly string[]; readonly style: Record<'head' | 'border', string[]> });
    push(row: readonly Cell[]): void;
    toString(): string;
  }
}
