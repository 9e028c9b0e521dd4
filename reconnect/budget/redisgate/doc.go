// Package redisgate limits the dials and the logins of a whole fleet, whose processes share one limit in
// Redis. It is a module of its own, because it needs github.com/redis/go-redis/v9. A [Limiter] is for dials,
// as described first, and [Logins] are for logins.
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	limiter, err := redisgate.New(client, &redisgate.Options{
//		Key:   "venue.example",
//		Rate:  budget.Window{N: 100, Per: time.Second}, // dials of all processes
//		Slots: 50,                                      // dials in progress, of all processes
//		Local: redisgate.Share{N: 25, Slots: 12},       // of this process, while Redis is away
//	})
//	gate, err := budget.NewGate(&budget.GateOptions{Limiter: limiter}) // for reconnect.RunOptions
//
// # Promises
//
// Rate is a rolling window, like [budget.Window]: at most N dials begin in any interval of the length Per, by
// the clock of the Redis server. The clocks of the processes do not matter. A dial begins when Acquire
// returns. The server may see dials closer together, because the network and a busy machine delay one dial
// more than another: leave room with a smaller N. A smaller Per spreads the dials: 10 in 100 ms is also never
// more than 100 in a second. A delay between Redis and the process does not break the limit: see
// Options.Slack.
//
// # Redis away
//
// Redis is away when a request fails or takes longer than Options.Timeout, when three responses in a row take
// longer than Options.Slack, or when it forgets (see below). Then a process waits for one window, and begins
// dials by its own share, Options.Local, after that. It asks Redis again twice a second, whether dials wait
// or not, and returns to Redis by itself. The limits meanwhile:
//
//   - Redis is away for all processes, or for none: at most Rate.N dials or the sum of all shares, whichever
//     is larger, in any interval. With a share of Rate.N divided by the number of processes there are never
//     more than Rate.N. The share is yours to choose, because redisgate does not count the processes.
//   - Redis is away for some processes only: at most Rate.N and the shares of those processes.
//   - Redis is back: each process notices that within Timeout and half a second, or twice the Timeout if that
//     is longer. Until then a process that had no dials to begin, and so has not noticed the outage, may get
//     some from Redis while others still use their shares, as in the second case. That cannot happen if a
//     dial was waiting, for longer than a window, when Redis went away.
//   - Slots have no window. There are at most Slots plus the sum of Local.Slots until all processes have
//     noticed that Redis is back and the dials that began before are done, and at most Slots after that. When
//     Redis is away for some processes only, and for longer than Options.Lease, other processes get their
//     slots, although their dials may still be in progress.
//
// A server that was restarted, emptied, or replaced by its replica has forgotten dials. The script notices
// that by the server's run_id and by missing keys. It lets no dial begin until a window has passed since all
// processes have noticed too: Per, Slack, Timeout, and half a second or another Timeout, whichever is
// longer. So a switch costs a pause of a window or two, and never a dial too many. If Per is minutes, this
// pause is minutes: prefer a small N and Per. The same pause follows:
//
//   - the first use of a Key
//   - a time, longer than a window, in which no process could ask the server
//   - the death of all processes that waited or held slots, if none has asked for so long
//   - with Slots, about half a Lease in which slots were held and no process asked; this pause has no window
//
// Status.ClosedUntil is the end of that pause. A server that forgets again before the pause is over, such as
// one that evicts the keys, would never let a dial begin. After three such pauses in a row the rules of an
// outage hold until a pause has ended: Options.Away is called, and the process uses its share, until a window
// before Status.ClosedUntil.
//
// Not noticed: two servers that both consider themselves the master, each of which lets N begin; and a
// restart with old data from disk, if the script may not call INFO. A clock of the server that is set back
// does no harm. A clock that is set ahead by more than two round-trips is noticed by each process that has
// asked before, and costs that process a window.
//
// # Costs
//
// A process has one request in flight, for all of its dials that wait, and makes at most 100 a second. Redis
// says how many dials may begin, and when to ask again. The process that has waited longest comes first. If
// there is enough for all processes that wait, they get equal shares, whatever the number of their dials.
// While no slot is free, a process that waits asks at most 20 times a second, and less often if many
// processes wait before it.
//
// Redis holds at most five keys. One, with about 2 kB at most, does not expire: delete the keys when the Key
// is not used any more. The server must not evict the keys (maxmemory-policy); the script treats an eviction
// like a restart. The user of the client needs these commands on the keys: EVALSHA, EVAL, TIME, INFO, and the
// commands on hashes and sorted sets. Redis 5 or later is needed.
//
// # Logins
//
//	shared, err := redisgate.NewLogins(client, &redisgate.LoginsOptions{Key: "account-17"})
//	logins, err := budget.NewLogins(&budget.LoginsOptions{ // for reconnect.RunOptions
//		Windows: []budget.Window{{N: 900, Per: 24 * time.Hour}}, // logins of all processes
//		Shared:  shared,
//	})
//
// At most N logins are taken in any interval of the length Per, by the clock of the Redis server. The server
// may see logins closer together, by the delays of the responses of Redis and of the logins: make Per
// longer by Timeout and that delay. All processes should have the same windows: a process with other windows
// applies its own to the logins of all. Each process asks Redis for new logins once a second. So a connection
// knows when a login is left, and waits until then. All processes wait for the same moment: one connection of
// each may dial for one login, and all but one wait again.
//
// While Redis is away, no process may log in: it does not know what the others do, and one login too many may
// cost the account, whereas a wait costs only time. Connections that are ready continue. Connections that are
// lost do not dial, and look again every 5 s; the error in Status and in WaitStart says "the logins cannot be
// counted", and why.
//
// Redis may forget: it was restarted, emptied or replaced, or has evicted keys. Each process gives back the
// logins that it knows. No process may log in until all have had time for that: 2 s and twice Timeout. The
// same pause follows the first use of a Key. These logins stay forgotten:
//
//   - the logins of processes that have all ended
//   - the logins of the last second of a process that was killed at the same time
//   - the logins of a process that cannot ask Redis until the pause is over
//   - if the script may not call INFO: the logins that are missing after a restart with older data
//
// If the clock of the server is set back, logins wait for as long as it was set back. If it is set ahead,
// logins look older than they are, which is not noticed.
//
// Redis holds two keys, with about 100 bytes for each login of the longest window, which expire a minute
// after the longest window, counted from the last request. A process keeps the same, and gets all logins when
// one is added: N should be some thousands at most.
package redisgate
