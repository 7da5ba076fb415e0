/**
 * Who paused an account because a send journal knows of sends that the ledger forgot. Adopting the ledger lifts this
 * pause; a pause by a person takes its place.
 */
export const JOURNAL_WITNESS = 'send journal';
