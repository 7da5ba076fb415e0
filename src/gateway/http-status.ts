import { AsyncLocalStorage } from 'node:async_hooks';

/** The HTTP status of a call, for who measures it: neither a result nor an error has it in all cases. */
interface Heard {
  httpStatus?: number;
}

const calls = new AsyncLocalStorage<Heard>();

/** @param into - takes the status of the response to what `work` asks, if one comes */
export function hearHttpStatus<Result>(into: Heard, work: () => Result): Result {
  return calls.run(into, work);
}

/** A whole response has come. Nothing but measurements depends on it. */
export function noteHttpStatus(httpStatus: number): void {
  const heard = calls.getStore();
  if (heard !== undefined) heard.httpStatus = httpStatus;
}
