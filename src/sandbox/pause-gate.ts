/** Holds responses back while it is shut. */
export class PauseGate {
  #opened: { promise: Promise<void>; open: () => void } | undefined;

  shut(): void {
    if (this.#opened !== undefined) return;
    let open = (): void => undefined;
    const promise = new Promise<void>((resolve) => (open = resolve));
    this.#opened = { promise, open };
  }

  open(): void {
    this.#opened?.open();
    this.#opened = undefined;
  }

  get isShut(): boolean {
    return this.#opened !== undefined;
  }

  /** Resolves at once while the gate is open, else when it opens. */
  async pass(): Promise<void> {
    // It may have been shut again in the meantime.
    while (this.#opened !== undefined) await this.#opened.promise;
  }
}
