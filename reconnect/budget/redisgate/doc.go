// Package redisgate bounds the dials of a whole fleet: the processes share one limit, which is kept in
// Redis. It is a module of its own, because it needs github.com/redis/go-redis/v9.
//
//	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
//	limiter, err := redisgate.New(client, &redisgate.Options{
//		Key:   "venue.example",
//		Rate:  budget.Window{N: 100, Per: time.Second}, // dials of all processes
//		Slots: 50,                                      // dials under way, of all processes
//		Local: redisgate.Share{N: 25, Slots: 12},       // of this one, while Redis is away
//	})
//	...
//	defer limiter.Close()
//	gate, err := budget.NewGate(&budget.GateOptions{Limiter: limiter})
//	...
//	conn, err := reconnect.New(d, &reconnect.Options{Run: reconnect.RunOptions{Gate: gate}})
//
// # What is promised
//
// Rate is a rolling window, as [budget.Window] is: at most N dials begin in any interval of the length
// Per, wherever the interval begins. A dial begins when Acquire returns. What the server sees may be
// closer together, because the network and a busy machine delay one dial more than another. Leave room
// for that with a smaller N. A smaller Per with the same rate spreads the dials: 10 in 100 ms is also
// never more than 100 in a second.
//
// A permit is void when it is older than Options.Slack, and the window in Redis is longer than Per by
// Slack. So no delay between Redis and the process breaks the limit. It costs a share of the rate, by
// default a twentieth.
//
// A slot is taken when a dial begins, and given back when the session is ready or the dial has
// failed. A process renews its slots twice a second. One that is killed loses them at the end of
// Options.Lease.
//
// # Redis away
//
// Redis is away when a question to it fails or takes longer than Options.Timeout, or when three answers
// in a row take longer than Options.Slack. Then a process waits for one window, and after that
// begins dials by its own share, Options.Local. It asks again twice a second, whether dials wait or not,
// and goes back by itself.
//
//   - When Redis is away for all processes, or for none, the most in any interval is Rate.N or the sum of
//     all shares, whichever is larger. With a share of Rate.N divided by the number of processes
//     there are never more than Rate.N. Nobody counts the processes: the share is the user's to choose.
//     Each notices that Redis is back within Options.Timeout and half a second, or twice the Timeout
//     if that is longer. Until then a process that has not noticed the outage, because it had no dials
//     to begin, may get some from Redis, while others still use their shares: then it is as in the
//     next case. If some were waiting when Redis went away, for longer than a window, that is noticed
//     and cannot happen.
//   - When Redis is away for some processes only, the most is Rate.N and the shares of those.
//   - Slots have no window. Until all processes have noticed that Redis is back, and the dials that
//     began before that are done, the most is Slots plus the sum of Local.Slots. After that it is Slots.
//     When Redis is away for some processes only, and for longer than Options.Lease, others get the
//     slots of those, whose dials may still go on.
//
// A server that was restarted, emptied, or replaced by its replica has forgotten dials. The script
// notices that by the server's run_id and by missing keys. It lets no dial begin until a window has
// passed since all processes have noticed too: Per, Slack, Timeout, and half a second or once more the
// Timeout, whichever is longer. The same goes for the first use of a Key, and for a server that could
// not be asked for longer than a window. So a switch costs a pause of a window or two, and never a dial
// too many. If Per is minutes, this pause is minutes: prefer a small N and Per. With Slots there is a
// pause without the window when some are held and nobody has asked for about half a Lease. There is no
// such pause when one process cannot reach a server that others ask meanwhile. There is one when all
// processes that waited or held slots were killed, and nobody has asked for so long: to the server that
// looks the same.
//
// Not seen are two servers that both take themselves for the master: each lets N begin. A clock that
// is set back does no harm; one that is set ahead by more than two round-trips is noticed by each
// process that has asked before, and costs it a window. A server on which the script may not call
// INFO works, but then a restart with old data from disk goes unnoticed.
//
// # What it costs
//
// A process asks one question at a time, for all of its dials that wait, and at most 100 a second.
// Redis says how many may begin, and when to ask again; a small jitter is added. The process that has
// waited longest comes first. If there is enough for all that wait, they get equal shares, whatever
// the number of their dials. While no slot is free, a process that waits asks 20 times a second at
// most, and less often if many processes wait before it.
//
// In Redis there are at most five keys. One, with about 2 kB at most, has no expiry and remains: delete
// the keys when the Key is not used any more. The server must not evict them; if it does, that is noticed
// as above. The user of the client needs these commands on the keys: EVALSHA, EVAL, TIME, INFO, and those on
// hashes and sorted sets. Redis 5 or later is needed.
//
// # Where others fail
//
//	what happens                                 others                                          here
//	a burst after a pause                        token buckets and GCRA let up to 2N through     never more than N
//	many wait                                    each polls, or is refused                       one question per process, with a time to come back
//	a slow answer                                is used, however old it is                      is void after Slack
//	Redis is down                                all stop, or none is limited                    each process has its share
//	Redis restarts, or a replica takes over      the count begins at zero, so 2N pass            a window passes first
//	the clocks of the processes differ           the window is wrong                             only the server's clock counts
//	a process is killed with slots               they are lost, or a lock expires under a slow   leases that are renewed
//	                                             dial
package redisgate
