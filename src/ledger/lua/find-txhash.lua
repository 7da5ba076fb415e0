-- ARGV: txhash
-- Returns: the payoutId that has it, or nil
return redis.call('HGET', txhash_bucket(ARGV[1]), ARGV[1])
