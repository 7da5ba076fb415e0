/**
 * Decides from counts whether jobs are lost. A count may be off for a moment, so it takes two looks in a row; and it may be
 * off for long with nothing to repair, as where the job of a payout that was resolved by hand waits for its turn, so what an
 * exact check leaves counts as normal.
 */
export class LostJobAlarm {
  #normal = 0;
  #suspected: number | undefined;

  /**
   * Takes note of a look.
   * @param lost - payouts without a job, by the counts; below zero where there are jobs without a payout
   * @returns whether an exact check is due
   */
  isDue(lost: number): boolean {
    // A surplus of payouts that nothing could be done about is normal for as long as it lasts.
    if (this.#normal > 0) this.#normal = Math.max(0, Math.min(this.#normal, lost));
    const before = this.#suspected;
    this.#suspected = lost > this.#normal ? Math.min(lost, before ?? lost) : undefined;
    return before !== undefined && this.#suspected !== undefined;
  }

  /**
   * Takes note of an exact check.
   * @param recreated - jobs that it had to re-create
   * @param lost - by the counts, after it
   */
  noteCheck(recreated: number, lost: number): void {
    const unexplained = recreated === 0 ? this.#suspected : undefined;
    // Not above zero otherwise: that would be damage which came during the check.
    this.#normal = unexplained ?? Math.min(0, lost);
    this.#suspected = undefined;
  }
}
