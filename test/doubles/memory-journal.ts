import type {
  ActNote,
  ActsLine,
  CompleteNote,
  JournaledLedger,
  JournaledOutcome,
  SendLine,
  JournalLine,
  JournalPeer,
  OutcomeLine,
  PausedLine,
  RatesLine,
  RejectionNote,
  ReplicasNote,
  SeenLine,
} from '../../src/journal/journal-line.js';
import { JournalView, ViewedJournal } from '../../src/journal/journal-view.js';
import type { ControlJournal } from '../../src/journal/control-journal.js';
import { JournalDamagedError, type SendJournal } from '../../src/journal/send-journal.js';
import type { SendAttempt } from '../../src/ledger/sender-ledger.js';

/** A send journal in memory, with what can go wrong with one. In the proofs, when and whether a line is written differs. */
export class MemoryJournal extends ViewedJournal implements SendJournal, ControlJournal {
  readonly journalId: string;
  readonly head = undefined;
  /** While it is set, the disk hangs: calls are rejected, and outcomes are lost. */
  isStalled = false;
  /** What is in the file, from any process. Processes of one host share it. */
  readonly lines: JournalLine[];
  /** Thrown by every write, and by `ensureWritable`, while it is set. Outcomes are then lost. */
  failWith: Error | undefined;
  onAppend: () => void | Promise<void> = () => undefined;
  onReload: () => void = () => undefined;
  protected view = new JournalView({ spends: true });
  #known = 0;
  #isDamaged = false;

  constructor(journalId = 'j-mine', lines: JournalLine[] = []) {
    super();
    this.journalId = journalId;
    this.lines = lines;
    this.readAll();
  }

  get sends(): readonly SendLine[] {
    return this.lines.filter((line) => 'payoutId' in line && 'request' in line);
  }

  get outcomes(): readonly string[] {
    return this.lines.flatMap((line) =>
      'outcome' in line ? [`${line.payoutId} ${line.attempt} ${line.outcome.kind}`] : [],
    );
  }

  given(...lines: JournalLine[]) {
    this.lines.push(...lines);
    this.readAll();
  }

  othersWrite(...lines: JournalLine[]) {
    this.lines.push(...lines);
  }

  damage(isDamaged = true) {
    this.#isDamaged = isDamaged;
  }

  readonly bind = async (ledger: JournaledLedger) => this.write(ledger);
  readonly notePeers = async (peers: readonly JournalPeer[]) => this.write({ peers });
  readonly notePaused = async (paused: PausedLine['paused']) => this.write({ paused });
  readonly noteResumed = async (resumed: ActNote) => this.write({ resumed });
  readonly noteComplete = async (complete: CompleteNote) => this.write({ complete });
  async noteSeen({ at, addresses }: SeenLine['seen']) {
    await this.write({ seen: { at, addresses } });
  }

  readonly noteActs = async (acts: ActsLine['acts']) => this.write({ acts });
  readonly noteRates = async (rates: RatesLine['rates']) => this.write({ rates });
  readonly noteReplicas = async (replicas: ReplicasNote) => this.write({ replicas });
  readonly noteRejected = async (rejected: RejectionNote) => this.write({ rejected });
  readonly noteUnrejected = async (unrejected: Pick<RejectionNote, 'payoutId' | 'rejection'>) =>
    this.write({ unrejected });
  async append(send: SendLine) {
    if (this.ledger === undefined) throw new Error('The journal is bound to no ledger');
    await this.onAppend();
    await this.write(send);
  }

  noteOutcome({ payoutId, attempt, token }: SendAttempt, outcome: JournaledOutcome, at: number) {
    this.writeOutcome({ payoutId, attempt, token, outcome, at });
  }

  async changedByOthers() {
    await this.ensureAnswers();
    return this.#isDamaged || this.hasUnreadLines;
  }

  async reload() {
    await this.ensureAnswers();
    this.onReload();
    if (this.#isDamaged) throw new JournalDamagedError('The send journal was damaged while it was in use.');
    this.readAll();
    return Promise.resolve();
  }

  async ensureWritable() {
    await this.ensureAnswers();
    if (this.failWith !== undefined) throw this.failWith;
  }

  protected async ensureAnswers() {
    if (this.isStalled) throw new Error('the disk has not answered');
    return Promise.resolve();
  }

  async close() {
    return Promise.resolve();
  }

  protected async write(line: JournalLine) {
    await this.ensureWritable();
    this.add(line);
  }

  protected writeOutcome(line: OutcomeLine) {
    if (this.failWith === undefined && !this.isStalled) this.add(line);
  }

  protected add(line: JournalLine) {
    this.lines.push(line);
    this.noteOwn(line);
  }

  protected noteOwn(line: JournalLine) {
    this.#known += 1;
    this.view.note(line);
  }

  protected get hasUnreadLines() {
    return this.#known !== this.lines.length;
  }

  protected readAll() {
    this.view = new JournalView({ spends: true });
    for (const line of this.lines) this.view.note(line);
    this.#known = this.lines.length;
  }
}
