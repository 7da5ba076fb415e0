-- The parts of this folder precede every script, in the order of scripts.ts. The loader puts constants before them,
-- made from states.ts, transitions.ts and keys.ts:
--   LEDGER, SENDER, OUTBOX, EVENTS, ACTIVITY, JOURNALS, OBJECTIONS, LATE, SPENT, RECHECK, UNKEPT, SCHEDULED: the
--     account's keys
--   INDEX: state → the key of its index
--   ENDED: state that is never left → the key of its index in a compact ledger
--   OWN: KEYS[OWN + 1] is the script's first key after the account's
--   CODE: state → its code in a compact history; STATE_OF: the other way round
--   ALLOWED: from → to → true; FINAL, NEEDS_JOB, UNSENT, KEPT: state → true
--   PAYOUT_PREFIX: the beginning of a payout's key
--   FORMAT: the newest ledger format that these scripts read
--   NEW_FORMAT: the format of a new ledger
--   MARKS_FORMAT: whether the script may mark a ledger that has no format yet
-- A script uses declared keys only: while a cluster moves a slot, Redis then refuses it before any write.
-- The writes of an interrupted script remain. So a change is one HSET of the record with the mark `pending`. The next
-- script that opens the record completes index, outbox and event.

-- Whether the ledger is written compactly, in format 4; earlier formats are read in either case.
-- A sender makes it so when it takes the lease. An earlier version's sender may then still wait for a response. Its
-- lease time is over, and its journal has the outcome.
local COMPACT_FORMAT = 4
local is_compact = false
