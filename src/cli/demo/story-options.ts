/** What a demo with a story of its own is given. */
export interface StoryOptions {
  /** The PATH for the workers' processes. */
  readonly path: string;
  /** Shows the progress, a line at a time, without its line break. */
  readonly note: (line: string) => void;
  readonly stop: AbortSignal;
}
