/** Replies of an honest Redis, altered on the way to the worker. */
export interface MiddleAttack {
  readonly name: string;
  /** Whether the payout was paid before; else it is queued, and held for its signature. */
  readonly isPaid: boolean;
  /** Alters a piece of a reply. */
  readonly alter: (reply: string) => string;
}

/** A bulk string as Redis writes it. */
const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
const told = (name: string, from: string, to: string) => (reply: string) =>
  reply.replaceAll(bulk(name) + bulk(from), bulk(name) + bulk(to));
const again = (reply: string): string => told('attempt', '1', '0')(told('state', 'completed', 'queued')(reply));

export const MIDDLE: readonly MiddleAttack[] = [
  { name: 'amount replaced', isPaid: false, alter: told('amount', '12.5', '99.5') },
  { name: 'state completed told as queued, attempt as 0', isPaid: true, alter: again },
];
