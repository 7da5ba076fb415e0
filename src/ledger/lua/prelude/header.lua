-- The parts of this folder stand before every script, in the order of scripts.ts. In front of them the loader puts
-- constants, made from states.ts, transitions.ts and keys.ts:
--   LEDGER, SENDER, OUTBOX, EVENTS, ACTIVITY, JOURNALS, OBJECTIONS, LATE, SPENT, RECHECK   the account's keys
--   INDEX       state → the key of its index
--   ENDED       state that is never left → the key of its index where the ledger is compact
--   OWN         KEYS[OWN + 1] is the first key that a script takes beside the account's
--   CODE        state → what stands for it in a history of a compact ledger        STATE_OF   the other way round
--   ALLOWED     from → to → true        FINAL, NEEDS_JOB, UNSENT   state → true
--   PAYOUT_PREFIX   what a payout's key begins with
--   FORMAT      the newest version of the ledger's format that these scripts read
--   NEW_FORMAT  the version with which a new ledger is marked
--   MARKS_FORMAT   whether the script may mark a ledger that has no format yet
-- A script touches declared keys only: while a cluster moves a slot, Redis then refuses it before anything is written.
--
-- A script that ends in its middle leaves its writes behind. So a change is one HSET of the record with the mark
-- `pending`, and what follows from it (index, outbox, event) is completed by the next script that opens the record.

-- Whether this ledger is written in the compact way of format 4; what earlier formats wrote is read in either case. A sender
-- makes it so when it takes the lease: one of an earlier version that still waits for a response has lost the lease for longer
-- than its time, and its outcome is in its journal.
local COMPACT_FORMAT = 4
local is_compact = false
