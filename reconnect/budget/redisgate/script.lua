-- One question of one process: how many of its waiting dials may begin now?
-- All times are in microseconds of the server's clock. The state is under five keys with one hash tag.
local state, queue, seen, held, lease = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id = ARGV[1]                 -- of the process
local want = tonumber(ARGV[2])     -- so many of its dials wait
local mine = tonumber(ARGV[3])     -- so many slots it holds, in all
local spent = tonumber(ARGV[4])    -- so many dials it began by itself within the window, while it could not ask; -1: it could
local n = tonumber(ARGV[5])        -- the limit: so many dials; 0: none
local w = tonumber(ARGV[6])        -- in any interval of this length
local slots = tonumber(ARGV[7])    -- so many dials under way; 0: no limit
local keep = tonumber(ARGV[8])     -- the lease of a slot
local lag = tonumber(ARGV[9])      -- until all processes have noticed that Redis is back
local limits = ARGV[10]            -- n, what w is to be without the slack, and slots; for users
local round = n > 0 and math.floor(math.min(math.max(w / 20, 10000), 250000)) or 50000 -- free dials are shared by the processes that come within this time
local longest = 5000000            -- a process comes back after this time at the latest
local alarm = (keep - lag) / 2     -- after so long a silence, leases may end before their processes are back
if slots > 0 then longest = math.min(longest, alarm / 2) end

local function int(x) return string.format('%.0f', x) end

local t = redis.call('TIME')
local raw = t[1] * 1000000 + t[2]
local info = redis.pcall('INFO', 'server') -- a server that refuses this is taken to be the same one always
local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or '-'

-- What the server knows. If it is another one than before, or was emptied, it does not know the dials of the last window, and the
-- processes that could not ask may still begin dials by themselves. So it lets none begin until that is over.
local m = redis.call('HMGET', state, 'run', 'now', 'skew', 'opens', 'log', 'total', 'window', 'limits', 'other', 'otherAt')
local other, otherAt = '', 0 -- the limits of another process, and when it has asked
local now, skew, opens, log, total, window = raw, 0, 0, '', 0, w
local holders = redis.call('HLEN', held)
if m[1] ~= run or holders ~= redis.call('ZCARD', lease) or (holders == 0 and tonumber(m[6]) > 0)
  or redis.call('ZCARD', queue) ~= redis.call('ZCARD', seen) then
  redis.call('DEL', state, queue, seen, held, lease)
  opens = raw + w + lag
else
  local last = tonumber(m[2])
  skew, opens, log, total, window = tonumber(m[3]), tonumber(m[4]), m[5], tonumber(m[6]), math.max(tonumber(m[7]), w)
  now = raw + skew
  if now < last then -- the clock was set back: go on from the last time
    skew = skew + last - now
    now = last
  end
  if m[8] then
    other, otherAt = m[9], tonumber(m[10])
    if m[8] ~= limits then other, otherAt = m[8], last end
    if other == limits or now - otherAt > 60000000 then other = '' end
  end
  local silent = now - last -- did nobody wait, or could nobody ask?
  if n > 0 and silent >= w then
    local missing = redis.call('ZRANGEBYSCORE', seen, '-inf', int(now - w + lag), 'LIMIT', 0, 1000) -- who should have come a window ago
    if spent >= 0 or #missing > 0 then opens = math.max(opens, now + w + lag) end
    for _, gone in ipairs(missing) do -- once
      redis.call('ZREM', queue, gone)
      redis.call('ZREM', seen, gone)
    end
  end
  if holders > 0 and silent >= alarm then -- a process that holds slots would have asked
    opens = math.max(opens, now + lag)
  end
end

-- Processes that are silent give up their slots at the end of the lease, and their place in the queue.
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', lease, '-inf', int(now), 'LIMIT', 0, 1000)) do
  total = total - (tonumber(redis.call('HGET', held, gone)) or 0)
  redis.call('HDEL', held, gone)
  redis.call('ZREM', lease, gone)
end
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', int(now), 'LIMIT', 0, 1000)) do
  redis.call('ZREM', queue, gone)
  redis.call('ZREM', seen, gone)
end

-- The dials of the window: their times, and how many began then.
local times, counts, used = {}, {}, 0
for at, count in string.gmatch(log, '(%d+):(%d+)') do
  at, count = tonumber(at), tonumber(count)
  if at + window > now then
    times[#times + 1], counts[#counts + 1] = at, count
    if at + w > now then used = used + count end
  end
end
local function note(count)
  if n > 0 and count > 0 then
    times[#times + 1], counts[#counts + 1] = now, count
    used = used + count
  end
end
note(spent)

total = total + mine - (tonumber(redis.call('HGET', held, id)) or 0)
local room = want
if slots > 0 then room = slots - total end
if n > 0 then room = math.min(room, n - used) end
if now < opens then room = 0 end
room = math.max(0, room)

-- Who waits longest is served first; with enough for all, all get the same.
local granted, back = 0, 0
if want > 0 then
  redis.call('ZADD', queue, 'NX', int(now), id)
  local fresh = int(now - round)
  local others = redis.call('ZCOUNT', queue, '-inf', fresh) -- who was not served just now
  if tonumber(redis.call('ZSCORE', queue, id)) > now - round then others = others + 1 end
  local rank = redis.call('ZRANK', queue, id)
  local share = room
  if n > 0 or slots > 0 then
    share = math.floor(room / others)
    if rank < room % others then share = share + 1 end
  end
  granted = math.min(want, share)
end
note(granted)
total, mine, room = total + granted, mine + granted, room - granted

if granted < want then
  if granted > 0 then redis.call('ZADD', queue, int(now), id) end
  back = round -- others have their share first, or a slot becomes free
  if now < opens then
    back = opens - now
  elseif n > 0 and room == 0 and used >= n then -- when enough dials leave the window for this process too
    local need, at = redis.call('ZRANK', queue, id) + 1, nil
    for i = 1, #times do
      if times[i] + w > now then
        need = need - counts[i]
        if not at and need <= 0 then at = times[i] end
        if at and times[i] <= at + round / 2 then back = times[i] + w - now end -- those that follow soon are shared with them
      end
    end
    if not at then back = w end
  elseif room == 0 and slots > 0 then -- those before this process come more often
    back = round * (1 + math.floor(redis.call('ZRANK', queue, id) / slots))
  end
  back = math.min(back, longest)
  redis.call('ZADD', seen, int(now + back + lag), id)
else
  redis.call('ZREM', queue, id)
  redis.call('ZREM', seen, id)
end

if slots > 0 and mine > 0 then
  redis.call('HSET', held, id, mine)
  redis.call('ZADD', lease, int(now + keep), id)
else
  total = total - mine
  redis.call('HDEL', held, id)
  redis.call('ZREM', lease, id)
end

-- A log of more than 128 entries is halved: two become one, at the later time.
local step = #times > 128 and 2 or 1
local parts = {}
for i = 1, #times, step do
  local at, count = times[i], counts[i]
  if step == 2 and times[i + 1] then at, count = times[i + 1], count + counts[i + 1] end
  parts[#parts + 1] = int(at) .. ':' .. count
end
redis.call('HSET', state, 'run', run, 'now', int(now), 'skew', int(skew), 'opens', int(opens), 'log', table.concat(parts, ' '), 'total', total, 'window', int(window),
  'limits', limits, 'other', other, 'otherAt', int(otherAt))
-- times in nanoseconds
return string.format('%.0f %.0f000 %.0f000 %.0f000 %q', granted, back, now, math.max(0, opens - now), other)
