-- The account before the script changed anything, read once; absent fields are false.
local account = {}
for i, value in ipairs(redis.call('HMGET', LEDGER, unpack(ACCOUNT_FIELDS))) do account[ACCOUNT_FIELDS[i]] = value end

-- A ledger of another format stays unchanged.
if account.format and account.format ~= FORMAT then return { -10, account.format } end
if not account.format and MARKS_FORMAT then redis.call('HSET', LEDGER, 'format', FORMAT) end
