import type { Pieces } from '../../../world/worker.js';

/** A mistake that someone might make, put in the place of the sound piece. */
export interface Mistake {
  readonly name: string;
  readonly pieces: Partial<Pieces>;
}
