import { hash } from 'node:crypto';
import type { JournalLine } from './journal-line.js';
import type { StoredLine } from './parse-line.js';

export function hashLine(text: string): string {
  return hash('sha256', text, 'hex');
}

/** @param prev - hashes of the lines that it follows; empty for the first */
export function toChainedText(line: JournalLine, prev: readonly string[]): string {
  return JSON.stringify({ ...line, prev: prev.length === 1 ? prev[0] : prev });
}

export function toChainedLines(lines: readonly JournalLine[], prev: readonly string[]): string {
  let text = '';
  let follows = prev;
  for (const line of lines) {
    const chained = toChainedText(line, follows);
    text += `${chained}\n`;
    follows = [hashLine(chained)];
  }
  return text;
}

/** More than other processes add between two reads of a running process. */
const RECENT_LINES = 1_000;

const MISSING = 'a line that it follows is not there: lines before it were changed, removed or moved';

/**
 * Follows the lines of a journal, file by file, and finds lines that do not belong.
 *
 * Each line names the lines that its writer had read and that no line named yet. Mostly that is one, the line above. If
 * a process that lost the lease adds a line at the same moment, two lines follow the same one. The next writer that has
 * read both names both. A line behind it detects a changed, removed, inserted or moved line. Only the end is open: a cut
 * there shows only by the hash of the last line, kept elsewhere.
 *
 * A line names lines of its own file; the first line, a header, names those of the file before. Torn lines do not count.
 */
export class LineChain {
  #former: ReadonlySet<string> = new Set();
  #known = new Set<string>();
  #tips = new Set<string>();
  #isNew = true;
  #isEmpty = true;

  get tips(): readonly string[] {
    return [...this.#tips];
  }

  startFile(): void {
    this.#former = this.#known;
    this.#known = new Set();
    this.#isEmpty = true;
  }

  /**
   * Adds the next line, even a wrong one. A repeated line counts once: a process reads its own line again if another
   * process added one before it.
   * @returns the problem, or undefined
   */
  add(lineHash: string, stored: StoredLine): string | undefined {
    const fault = this.#findFault(stored);
    // The first line of a file names all lines that count, so late lines of the previous file are not named.
    if (this.#isEmpty) this.#tips.clear();
    [this.#isNew, this.#isEmpty] = [false, false];
    for (const named of stored.prev ?? []) this.#tips.delete(named);
    if (!this.#known.has(lineHash)) this.#tips.add(lineHash);
    this.#known.add(lineHash);
    return fault;
  }

  /** Forgets all but the newest lines. A line that follows an older one then seems wrong until all is read again. */
  trim(): void {
    this.#former = new Set();
    if (this.#known.size <= 2 * RECENT_LINES) return;
    this.#known = new Set([...this.#known].slice(-RECENT_LINES).concat(this.tips));
  }

  #findFault({ line, prev }: StoredLine): string | undefined {
    if (prev === undefined) return 'it does not name the line before it';
    if (this.#isEmpty && !('v' in line)) return 'the header before it is missing';
    // The predecessor of the oldest file was removed or never existed.
    if (this.#isNew) return undefined;
    const known = this.#isEmpty ? this.#former : this.#known;
    return prev.length > 0 && prev.every((named) => known.has(named)) ? undefined : MISSING;
  }
}
