-- One question of one process about the logins of an account: which are known, and may it make one more?
-- All times are in microseconds of the server's clock. The record is under two keys with one hash tag.
local logins, state = KEYS[1], KEYS[2]
local id = ARGV[1]               -- of the login that is to be made; empty: none
local epoch = ARGV[2]            -- of the record that the process knows; empty: it knows none
local version = tonumber(ARGV[3]) -- likewise
local newest = tonumber(ARGV[4]) -- when the newest login was made that the process knows; 0: it knows none
local fresh = ARGV[5]            -- the epoch of the record, if the record begins now
local pause = tonumber(ARGV[6])  -- for how long no login is made then
local longest = tonumber(ARGV[7]) -- the longest window that the process knows; 0: none
local first = 9                  -- windows: the number and the length of each
local back = first + 2 * tonumber(ARGV[8]) -- logins that the server has forgotten: the time and the id of each

local function int(x) return string.format('%.0f', x) end

local info = redis.pcall('INFO', 'server') -- a server that refuses this is taken to be the same one always
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or '-'
local m = redis.call('HMGET', state, 'epoch', 'version', 'opens', 'longest', 'newest', 'run', 'ahead')
local current, present, opens = m[1], tonumber(m[2] or 0), tonumber(m[3] or 0)
longest = math.max(longest, tonumber(m[4] or 0))
newest = math.max(newest, tonumber(m[5] or 0))
for i = first, back - 1, 2 do longest = math.max(longest, tonumber(ARGV[i + 1])) end
for i = back, #ARGV, 2 do redis.call('ZADD', logins, ARGV[i], ARGV[i + 1]) end
if #ARGV >= back then present = present + 1 end

local t = redis.call('TIME')
local clock = t[1] * 1000000 + t[2]

-- A login that is in the future by more than the longest window was made when the clock was wrong, or the clock is wrong
-- now. It counts until that has been so for the length of that window, and is removed then.
local far, ahead = clock + longest, tonumber(m[7] or 0)
if longest == 0 or redis.call('ZCOUNT', logins, '(' .. int(far), '+inf') == 0 then
  ahead = 0
elseif ahead == 0 or ahead > clock then
  ahead = clock
elseif clock - ahead >= longest then
  redis.call('ZREMRANGEBYSCORE', logins, '(' .. int(far), '+inf')
  ahead, present = 0, present + 1
end
if longest > 0 and newest > far then newest = 0 end -- because it does not show that logins were forgotten

local last = 0 -- when the newest of the other logins was made
local list = redis.call('ZREVRANGE', logins, 0, ahead > 0 and -1 or 0, 'WITHSCORES')
for i = 2, #list, 2 do
  local at = tonumber(list[i])
  if ahead == 0 or at <= far then last = math.max(last, at) end
end
local now = math.max(clock, last + 1) -- the clock may have been set back

-- If the record is not there, or is older than what the process knows, the server has forgotten logins. Another server, or one that has
-- begun again, may have. The processes give back those that they know, and no login is made until all have had the time for it.
if not current or m[6] ~= run or (newest > last and newest > now - longest) then
  current, opens = fresh, now + pause
end
opens = math.min(opens, now + pause)
if longest > 0 then redis.call('ZREMRANGEBYSCORE', logins, '-inf', int(now - longest)) end

local taken = 0
if id ~= '' and redis.call('ZSCORE', logins, id) then
  taken = 1 -- the question was asked before, and its answer was lost
elseif id ~= '' and now >= opens and (epoch == '' or epoch == current) then
  taken = 1
  for i = first, back - 1, 2 do
    if redis.call('ZCOUNT', logins, '(' .. int(now - ARGV[i + 1]), '+inf') >= tonumber(ARGV[i]) then taken = 0 end
  end
  if taken == 1 then
    redis.call('ZADD', logins, int(now), id)
    last, present = now, present + 1
  end
end

local keep = int(longest / 1000 + 60000)
redis.call('HSET', state, 'epoch', current, 'version', int(present), 'opens', int(opens), 'longest', int(longest),
  'newest', int(last), 'run', run, 'ahead', int(ahead))
redis.call('PEXPIRE', state, keep)
redis.call('PEXPIRE', logins, keep)
local answer = { string.format('%.0f %.0f %.0f000 %.0f %.0f %q', taken, clock, math.max(0, opens - now), present, longest, current) }
if epoch ~= current or version ~= present then
  list = redis.call('ZRANGE', logins, 0, -1, 'WITHSCORES')
  for i = 1, #list, 2 do answer[#answer + 1] = int(tonumber(list[i + 1])) .. ' ' .. list[i] end
end
return table.concat(answer, '\n')
