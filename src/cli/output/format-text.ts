const SHOWN_START = 8;
const SHOWN_END = 6;

/** A long address or hash by its ends, which is how people compare them in a list. */
export function shorten(text: string): string {
  if (text.length <= SHOWN_START + SHOWN_END + 1) return text;
  return `${text.slice(0, SHOWN_START)}…${text.slice(-SHOWN_END)}`;
}

/** A number of things: `1 payout`, `2 payouts`. */
export function formatCount(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}

/** An ISO time as people read it, in UTC. */
export function formatTime(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, '');
}

/** A duration in its two largest units. @param ms - milliseconds */
export function formatDuration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
