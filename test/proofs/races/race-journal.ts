import type { JournalLine, OutcomeLine } from '../../../src/journal/journal-line.js';
import { MemoryJournal } from '../../doubles/memory-journal.js';
import type { RaceWorld } from './race-world.js';

/** The journal of the host on which all workers run, as one process sees it: everything that it does has its turn. */
export class RaceJournal extends MemoryJournal {
  readonly #world: RaceWorld;
  readonly #name: string;
  /** What it does is serialized, outcomes too, for which nobody waits. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(world: RaceWorld, name: string, lines: JournalLine[]) {
    super('j-race', lines);
    this.#world = world;
    this.#name = name;
  }

  override async changedByOthers(): Promise<boolean> {
    return this.#inTurn('checks the journal', () => this.hasUnreadLines);
  }

  override async reload(): Promise<void> {
    await this.#inTurn('reads the journal', () => {
      this.readAll();
    });
  }

  protected override async write(line: JournalLine): Promise<void> {
    await this.#inTurn('writes to the journal', () => {
      this.add(line);
      this.#world.note(`${this.#name} journal: ${JSON.stringify(line)}`);
    });
  }

  protected override writeOutcome(line: OutcomeLine): void {
    void this.write(line);
  }

  async #inTurn<Result>(what: string, work: () => Result): Promise<Result> {
    const result = this.#queue.then(async () => {
      await this.#world.turn(`${this.#name} ${what}`);
      return work();
    });
    this.#queue = result;
    return result;
  }
}
