/**
 * Lets concurrent callers share one wait, which covers everything before it. Callers during a wait share the next one.
 */
export class SharedWait<Reply> {
  readonly #wait: () => Promise<Reply>;
  #running: Promise<Reply> | undefined;
  #next: Promise<Reply> | undefined;

  constructor(wait: () => Promise<Reply>) {
    this.#wait = wait;
  }

  async join(): Promise<Reply> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#startAfter(this.#running);
    return this.#next;
  }

  async #startAfter(running: Promise<Reply>): Promise<Reply> {
    await running.catch(() => undefined);
    this.#next = undefined;
    return this.#start();
  }

  async #start(): Promise<Reply> {
    const running = this.#wait();
    this.#running = running;
    try {
      return await running;
    } finally {
      if (this.#running === running) this.#running = undefined;
    }
  }
}
