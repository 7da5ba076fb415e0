import { beforeEach, describe, expect, it } from '@jest/globals';
import type { SendAttempt } from '../../src/ledger/sender-ledger.js';
import { silentLogger } from '../../src/logger.js';
import { AttemptBook } from '../../src/worker/attempt-book.js';
import { listeningLogger, makeSendRig, type SendRig } from './support/send-rig.js';

let rig: SendRig;
let book: AttemptBook;
beforeEach(async () => {
  rig = await makeSendRig();
  const { clock, held, giveUp, said } = rig;
  book = new AttemptBook({
    clock,
    ledger: rig.port,
    held,
    giveUp: giveUp.signal,
    maxRejectionsInARow: 2,
    maxUnknownsInARow: 2,
    logger: listeningLogger(said),
  });
});

const accepted = { kind: 'accepted', txhash: 'h', durationMs: 1 } as const;
const rejected = (message: string) => ({ kind: 'rejected', message, durationMs: 1 }) as const;
const silence = { kind: 'unknown', reason: 'silence', durationMs: 1 } as const;

async function begin(payoutId: string): Promise<SendAttempt> {
  const { ledgerId, sends } = await rig.ledger.readSender();
  const attempt = { payoutId, attempt: ((await rig.ledger.readPayout(payoutId))?.attempt ?? 0) + 1 };
  await rig.ledger.beginSend({ ...attempt, lease: rig.held.lease, ledgerId, sends });
  return { ...attempt, epoch: rig.held.lease.epoch };
}

const stateOf = async (payoutId: string) => (await rig.ledger.readPayout(payoutId))?.state;

describe('finish', () => {
  it('records the outcome, and says nothing of it', async () => {
    await book.finish(await begin('p'), accepted);
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'in_progress', txhash: 'h' });
    expect(rig.said).toEqual([]);
  });

  it('asks until Redis answers, less and less often, but every two seconds at least', async () => {
    const attempt = await begin('p');
    const asked: number[] = [];
    rig.before.finishSend = () => {
      asked.push(rig.clock.now());
      if (asked.length < 9) throw new Error('Redis is away');
    };
    await rig.clock.until(book.finish(attempt, accepted));
    const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    expect(gaps).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    expect(await stateOf('p')).toBe('in_progress');
    expect(rig.said).toHaveLength(8);
    expect(rig.said[0]).toBe('warn cannot record the outcome: Redis is away');
  });

  it('gives up when the process must end, after one more try', async () => {
    const attempt = await begin('p');
    let asked = 0;
    rig.before.finishSend = () => {
      asked += 1;
      throw new Error('Redis is away');
    };
    const finishing = book.finish(attempt, accepted);
    await rig.clock.advance(60);
    expect(asked).toBe(2);
    rig.giveUp.abort();
    await rig.clock.until(finishing);
    expect(asked).toBe(3);
    expect(await stateOf('p')).toBe('sending');
  });

  it('tells when somebody else has decided before', async () => {
    const attempt = await begin('p');
    await rig.ledger.finishSend(attempt, accepted, { maxRejectionsInARow: 9, maxUnknownsInARow: 9 });
    await book.finish(attempt, silence);
    expect(rig.said).toEqual(['warn the outcome had been recorded or decided before']);
    expect(await stateOf('p')).toBe('in_progress');
  });

  it('pauses at once when the answer looks like a block, and says so', async () => {
    await book.finish(await begin('p'), rejected('account blocked'));
    expect((await rig.ledger.readSender()).pausedReason).toBe(
      "the gateway's answer looks like a block: account blocked",
    );
    expect(rig.said).toEqual(['error the account is paused; `payouts resume` lets it go on']);
  });

  it.each([
    [rejected('wrong address'), '2 rejections in a row, the last: wrong address'],
    [silence, '2 sends in a row without a trustworthy answer, the last: silence'],
  ])('pauses after so many in a row as it was told: %j', async (outcome, reason) => {
    await book.finish(await begin('p'), outcome);
    expect((await rig.ledger.readSender()).pausedReason).toBeUndefined();
    await book.finish(await begin('q'), outcome);
    expect((await rig.ledger.readSender()).pausedReason).toBe(reason);
  });

  it('takes the words of a block for one only when the gateway said them', async () => {
    await book.finish(await begin('p'), { kind: 'unknown', reason: 'blocked by a proxy', durationMs: 1 });
    expect((await rig.ledger.readSender()).pausedReason).toBeUndefined();
    expect(await rig.ledger.readPayout('p')).toMatchObject({ state: 'unknown', message: 'blocked by a proxy' });
  });
});

describe('confirmLast', () => {
  it('does nothing before the first outcome', async () => {
    rig.before.finishSend = () => {
      throw new Error('it should not be called');
    };
    await book.confirmLast();
  });

  it('changes nothing, and says nothing, where the outcome is known', async () => {
    await book.finish(await begin('p'), accepted);
    await book.confirmLast();
    expect(rig.said).toEqual([]);
  });

  it('records the outcome again where it was forgotten, with the pause that belongs to it', async () => {
    const attempt = await begin('p');
    const older = rig.ledger.snapshot();
    await book.finish(attempt, rejected('account blocked'));
    rig.ledger.restore(older);
    rig.said.length = 0;
    await book.confirmLast();
    expect(await stateOf('p')).toBe('rejected');
    expect(rig.said).toEqual(['error the account is paused; `payouts resume` lets it go on']);
  });

  it('fails when Redis is away, and does not wait for it', async () => {
    await book.finish(await begin('p'), accepted);
    rig.before.finishSend = () => {
      throw new Error('Redis is away');
    };
    await expect(book.confirmLast()).rejects.toThrow('Redis is away');
  });
});

describe('revert', () => {
  it('puts the payout back, as soon as Redis answers', async () => {
    const attempt = await begin('p');
    let asked = 0;
    rig.before.revertSend = () => {
      asked += 1;
      if (asked < 3) throw new Error('Redis is away');
    };
    await rig.clock.until(book.revert(attempt, 'the connection ended'));
    expect((await rig.ledger.readPayout('p'))?.history.at(-1)).toMatchObject({
      to: 'queued',
      reason: 'the connection ended',
    });
    expect(rig.said[0]).toBe('warn cannot put back: Redis is away');
  });

  it('stays in the book: a begin that takes effect later is put back as well', async () => {
    rig.giveUp.abort();
    rig.before.revertSend = () => {
      throw new Error('Redis is away');
    };
    const attempt = { payoutId: 'p', attempt: 1, epoch: rig.held.lease.epoch };
    await book.revert(attempt, 'no reply');
    delete rig.before.revertSend;
    await begin('p');
    await book.settleLeftovers(['p']);
    expect(await stateOf('p')).toBe('queued');
    expect((await rig.ledger.readPayout('p'))?.history.at(-1)?.reason).toBe(
      'its begin was noted late; it was not sent',
    );
  });
});

describe('settleLeftovers', () => {
  it('puts back what has begun and was not written', async () => {
    book.mayHaveBegun(await begin('p'));
    await book.settleLeftovers(['p']);
    expect(await stateOf('p')).toBe('queued');
  });

  it('never puts back what may have been written', async () => {
    const attempt = await begin('p');
    book.mayHaveBegun(attempt);
    book.disown(attempt);
    await book.settleLeftovers(['p']);
    expect(await stateOf('p')).toBe('sending');
  });

  it('leaves payouts alone of which it was not asked', async () => {
    book.mayHaveBegun(await begin('p'));
    await book.settleLeftovers(['q']);
    expect(await stateOf('p')).toBe('sending');
  });

  it('remembers every attempt of a payout, each once', async () => {
    const reverted: number[] = [];
    rig.before.revertSend = () => void reverted.push(1);
    const attempt = { payoutId: 'p', attempt: 1, epoch: rig.held.lease.epoch };
    book.mayHaveBegun(attempt);
    book.mayHaveBegun(attempt);
    book.mayHaveBegun({ ...attempt, attempt: 2 });
    await book.settleLeftovers(['p']);
    expect(reverted).toHaveLength(2);
  });

  it('records the last outcome again rather than calling the payout unknown', async () => {
    const attempt = await begin('p');
    const older = rig.ledger.snapshot();
    await book.finish(attempt, accepted);
    rig.ledger.restore(older);
    await book.settleLeftovers(['p']);
    expect(await stateOf('p')).toBe('in_progress');
  });

  it('makes unknown what an earlier sender left', async () => {
    await begin('p');
    const epoch = (await rig.ledger.acquireLease('two', (await rig.ledger.readSender()).lease)) ?? 0;
    const later = new AttemptBook({
      clock: rig.clock,
      ledger: rig.ledger,
      held: { ...rig.held, lease: { owner: 'two', epoch } },
      giveUp: rig.giveUp.signal,
      maxRejectionsInARow: 2,
      maxUnknownsInARow: 2,
      logger: silentLogger,
    });
    await later.settleLeftovers(['p']);
    expect(await stateOf('p')).toBe('unknown');
  });
});
