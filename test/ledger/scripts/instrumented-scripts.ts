import { commandName, SCRIPT_NAMES, scriptSource, type ScriptName } from '../../../src/ledger/ledger-connection.js';
import type { RedisClient } from '../../../src/base/redis.js';

/** Stands in front of a script, in the place of `redis`: sees every command. */
const WATCHED = `
local real = redis
local calls = 0
local declared = {}
for _, key in ipairs(KEYS) do declared[key] = true end
-- The place of the key among a command's words; most have it first.
local PLACE = { TIME = 0, XINFO = 3, XGROUP = 3, XREADGROUP = 8 }
local function watched(call)
  return function(...)
    local words = { ... }
    local place = PLACE[string.upper(words[1])] or 2
    if place > 0 and not declared[words[place]] then error('undeclared key ' .. tostring(words[place])) end
    local reply = call(...)
    calls = calls + 1
    if calls == INTERRUPTED_AFTER then error('interrupted') end
    return reply
  end
end
local redis = { call = watched(real.call), pcall = watched(real.pcall), sha1hex = real.sha1hex }
`;

/**
 * Makes every script of a connection fail that touches a key which it was not given, and one of them end in its middle.
 * @param interrupted - the script, and after how many commands it ends with an error
 */
export function instrumentScripts(
  redis: RedisClient,
  interrupted?: { readonly name: ScriptName; readonly after: number },
): void {
  for (const name of SCRIPT_NAMES) {
    const after = interrupted?.name === name ? interrupted.after : 0;
    const watched = WATCHED.replace('INTERRUPTED_AFTER', String(after));
    redis.defineCommand(commandName(name), { lua: `${watched}\n${scriptSource(name)}` });
  }
}
