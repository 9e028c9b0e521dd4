package dialer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/retry"
)

// Dialer is a [net.Dialer] that retries until it is connected, its context is done, or MaxElapsed
// is over: connect_retry of Stevens and Rago, "Advanced Programming in the UNIX Environment",
// section 16.4, with jitter. Each attempt has its own socket, and the waits between them grow.
//
// The zero value is ready to use. Fields must not change after the first call of a method; from
// then on a Dialer is safe for concurrent use, and must not be copied. It has nothing to close.
//
// Many clients keep dialing for requests that are gone. So that dials do not pile up while a server
// is away, at most 8 calls of DialContext to one address retry; each further call makes one
// attempt, as in net.Dialer. Calls that wait at the same time make about two attempts per second
// together, and once any has connected they follow immediately, one at a time. If more goroutines
// must wait for one address, use a Dialer per 8.
//
// DialContext goes wherever the DialContext of a net.Dialer goes:
//
//	t := http.DefaultTransport.(*http.Transport).Clone()    // net/http
//	t.DialContext = d.DialContext                           // a new Transport would have no HTTP/2, proxy or limit on TLS
//	redis.Options{Dialer: d.DialContext, DialerRetries: 1}  // go-redis
//	config.DialFunc = d.DialContext                         // pgx, pgxpool
//	mysql.RegisterDialContext("retry", ...)                 // a driver of database/sql: its own name for a dial function
//	grpc.WithContextDialer(...)                             // gRPC: network "tcp", MaxElapsed: time.Second
//
// The zero value suits all of them except gRPC, which needs that MaxElapsed. This table, also with
// the zero value for gRPC, is about a server that is away for a minute while each client makes 20
// calls per second, limited to 1 s each ("go run ./dial" in bench/interop; a net.Dialer in
// parentheses):
//
//	client, its connections   tries/s      dials in progress   a call fails     back after, s
//	net/http, no limit        22 (20)      8 (0)               immediately      0.04 (less than 0.01)
//	net/http, at most 4       2 (20)       4 (0)               at its limit     0.5 (0.04)
//	pgxpool, at most 4        2 (20)       4 (0)               at its limit     0.1 (0.03)
//	gRPC                      0.3 (0.1)    1 (0)               see below        4.3 (14)
//	go-redis                  1.7 (1.3)    1 (0)               after 0.1 s      0.3 (0.7)
//	a loop that only dials    0.1 (1)      1 (0)               after 127 s      14 (0.6)
//
// Settings, and what they cost:
//
//   - net/http makes up to 8 unneeded connections when the server is back.
//   - With a limit on connections, as in pgxpool or MaxConnsPerHost of http.Transport, all may be
//     waiting, so that calls fail at their limit. MaxElapsed: time.Second makes 16 attempts per
//     second instead of 2. A pool with one connection waits for up to a minute without it.
//   - gRPC redials. With the zero value its calls that do not wait for a connection fail at their
//     limit during the first dial, which takes 20 s, and then immediately. With MaxElapsed:
//     time.Second they fail immediately after a second, and gRPC's backoff takes 16 s to be back.
//   - go-redis repeats dials, unless DialerRetries is 1.
//   - A loop may be back up to a minute late. MaxElapsed: time.Second, with a second between calls,
//     reduces that to 0.2 s, at 1.4 attempts per second.
//
// Rules for these clients:
//
//   - TLS starts after the dial in net/http, pgx, gRPC, kafka-go and amqp091. But go-redis silently
//     ignores its TLSConfig if it has a Dialer, and franz-go rejects a DialTLSConfig: for these, use
//     DialOnce: (&tls.Dialer{Config: config}).DialContext.
//   - The client's limit on a dial bounds the outage that can be bridged: DialTimeout of go-redis (5
//     s, repeated DialerRetries times, 5) and of kafka-go (5 s), ConnectTimeout of pgx (none; in a
//     pgxpool 2 min). http.Transport continues dialing for a canceled request until MaxElapsed or
//     CloseIdleConnections.
//   - If a client could try another server instead, such as another Kafka broker or pgx host, set a
//     MaxElapsed of about a second.
//   - pgx looks names up itself, once, unless config.LookupFunc returns the host unchanged. It also
//     uses DialFunc to cancel a query, which should not be retried.
//   - A server may accept connections before it is ready, like PostgreSQL ("starting up", 57P03):
//     put a [retry.Loop] around the whole of connecting.
type Dialer struct {
	// Policy draws the waits and the limits on the attempts. Default: full jitter from 1 s,
	// doubling up to 64 s, but only up to n seconds while n > 1 calls wait for the address; 16 s
	// for an attempt, doubling up to 96 s when attempts time out.
	Policy backoff.Policy

	// MaxElapsed limits a whole DialContext: attempts, waits and the gate. DialContext gives up
	// rather than begin a wait that would reach it: with 1 s usually after two or three attempts.
	// Default: 127 s, the sum of connect_retry's waits. Negative means none.
	MaxElapsed time.Duration

	// ConnectTimeout limits each attempt: name lookup, which fails after three quarters of it as a
	// [net.DNSError], and TCP, without the gate. Default: the limit that Policy draws, or 16 s.
	// Negative means none.
	ConnectTimeout time.Duration

	// Classify returns the verdict on the error of an attempt. It is not called when ctx is done.
	// An error that no retry can fix, such as an address without a port, is marked with
	// [backoff.Permanent]. Default: [backoff.Classify], which retries a failed name lookup.
	Classify func(error) backoff.Verdict

	// Gate, such as a budget.Gate, holds each attempt until it may begin. It gets the address as
	// the host. Dials that net/http continues for requests that are gone pile up at a gate: set a
	// MaxConnsPerHost too. Default: none.
	Gate backoff.Gate

	// Budget admits each attempt, including the first, before the wait for it. Default: none.
	Budget retry.Budget

	// DialOnce makes one attempt with any other dialer. DialContext waits for it, so it must return
	// when ctx is done. Default: a socket made by TCP for "tcp", "tcp4" and "tcp6", a zero
	// net.Dialer for other networks.
	DialOnce func(ctx context.Context, network, address string) (net.Conn, error)

	// TCP has the options of a TCP connection. Not used with DialOnce.
	TCP TCPOptions

	// OnProgress is called before each wait and once at the end, on the goroutine of DialContext,
	// with no lock held. Default: none.
	OnProgress func(Progress)

	// Rand draws the waits and the order of addresses. It is used under a lock. Default:
	// math/rand/v2.
	Rand rand.Source

	mu      sync.Mutex // guards Rand
	waiters waiters
}

// defaultElapsed is the sum of the waits of connect_retry.
const defaultElapsed = 127 * time.Second

var defaultPolicy = backoff.WithTimeouts(
	&backoff.Exponential{Cap: 64 * time.Second}, backoff.Timeout{}, backoff.Timeout{},
)

// Validate returns an error naming any invalid option. DialContext returns it too.
func (d *Dialer) Validate() error {
	if err := d.TCP.validate(); err != nil {
		return fmt.Errorf("dialer: Dialer.TCP.%w", err)
	}
	return nil
}

// DialContext connects to address; for networks and addresses see [net.Dial]. It returns the
// connection of the last attempt as it is, for "tcp" a [*net.TCPConn], which does not depend on
// ctx. When it returns an error, nothing is left open or in flight.
//
// An error is a [*net.OpError], as in net.Dialer, and prints like
//
//	dial tcp db.example:5432: gave up after 9 tries in 1m48s, because the next wait would not end within MaxElapsed (2m7s): dial tcp 10.0.0.7:5432: connect: connection refused
//
// It wraps a [*retry.Error], which matches [backoff.ErrGaveUp] (also if 8 other calls already
// retry), [retry.ErrNoBudget], or the error and the cause of ctx, and holds the error of the last
// attempt. If no retry can fix that error, it wraps it alone. Its Timeout reports whether time ran
// out: a deadline, MaxElapsed, or the limit on the last attempt.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c := &dialing{Dialer: d, Progress: Progress{Network: network, Address: address}, began: time.Now()}
	c.waiter = waiter{to: dialAddr{network, address}, kick: make(chan struct{}, 1)}
	defer c.end()
	err := d.Validate()
	if err == nil {
		err = d.retrier(c).Do(ctx, c.try)
	}
	if c.conn != nil {
		d.waiters.connected(&c.waiter)
	}
	if err != nil {
		err = c.failure(err)
	}
	c.notify(Progress{Err: err, Done: true})
	c.returned = true
	return c.conn, err
}

func (d *Dialer) retrier(c *dialing) *retry.Loop {
	return &retry.Loop{
		Policy:     cmp.Or[backoff.Policy](d.Policy, waiterPolicy{&d.waiters, &c.waiter}),
		MaxElapsed: cmp.Or(d.MaxElapsed, defaultElapsed),
		Classify:   d.Classify,
		Budget:     c,
		Kick:       c.waiter.kick,
		Gate:       d.Gate,
		Host:       c.Address,
		Rand:       newRand(&d.mu, d.Rand),
		OnWait: func(err error, wait time.Duration) {
			c.waiters.wait(&c.waiter)
			c.notify(Progress{Err: err, Wait: wait})
		},
	}
}

func (d *Dialer) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	if d.DialOnce != nil {
		return notNil(d.DialOnce(ctx, network, address))
	}
	switch network {
	case "tcp", "tcp4", "tcp6":
		return d.dialTCP(ctx, network, address)
	}
	var n net.Dialer
	return n.DialContext(ctx, network, address)
}

func (d *Dialer) dialTCP(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, network, port); err != nil {
		return nil, backoff.Permanent(err)
	}
	o := d.TCP.withDefaults()
	if host == "" { // this machine, as in net.Dial
		return o.connect(ctx, network, address)
	}
	return o.dial(ctx, newRand(&d.mu, d.Rand), new(hangs).at, d.connectLimit(ctx), network, address)
}

// connectLimit returns the limit on a try, or 0 if there is none.
func (d *Dialer) connectLimit(ctx context.Context) time.Duration {
	if d.ConnectTimeout < 0 {
		return 0
	}
	return cmp.Or(d.ConnectTimeout, max(backoff.AttemptFrom(ctx).Connect, 0), backoff.DefaultConnect)
}

// Progress reports the progress of a DialContext of a [Dialer]. For a log:
//
//	OnProgress: func(p dialer.Progress) {
//		switch {
//		case !p.Done:
//			log.Printf("%s: away (%v), next try in %v", p.Address, p.Err, p.Wait.Round(time.Second))
//		case p.Err == nil && p.Tries > 1:
//			log.Printf("%s: back after %v", p.Address, p.Elapsed)
//		}
//	}
type Progress struct {
	Network, Address string // the arguments of DialContext

	Tries   int           // so far
	Elapsed time.Duration // since DialContext was called
	Err     error         // of the last attempt; with Done, the error that DialContext returns, or nil
	Wait    time.Duration // until the next attempt or the gate before it; 0 with Done
	Done    bool          // DialContext is about to return
}

// dialing is one DialContext.
type dialing struct {
	*Dialer
	Progress
	began time.Time
	conn  net.Conn

	waiter waiter
	full   bool // not tried again, because maxWaiters other calls are

	panicked *panicError // of a try, or nil
	returned bool        // no function among the options has panicked or called runtime.Goexit
}

// try dials once.
func (c *dialing) try(ctx context.Context) error {
	c.waiters.try(&c.waiter)
	c.Tries++
	one, cancel := c.limited(ctx)
	defer cancel()
	nc, err := call(func() (net.Conn, error) { return c.dialOnce(one, c.Network, c.Address) })
	c.panicked, _ = errors.AsType[*panicError](err)
	raise(err)
	switch {
	case err == nil && ctx.Err() != nil:
		nc.Close() // it came too late
		return context.Cause(ctx)
	case err == nil:
		c.conn = nc
		return nil
	case one.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return context.Cause(one) // says which limit it was
	case hopeless(err):
		return backoff.Permanent(err)
	}
	return err
}

// end closes the connection if a function among the options panicked or called runtime.Goexit on
// this goroutine. It turns a panic into a [panicError]; a Goexit continues.
func (c *dialing) end() {
	c.waiters.leave(&c.waiter)
	if c.returned {
		return
	}
	if c.conn != nil {
		c.conn.Close()
	}
	v := recover()
	switch {
	case c.panicked != nil: // rather than a later panic of a done
		panic(c.panicked)
	case v != nil:
		panic(&panicError{v, debug.Stack()})
	}
}

// Admit implements [retry.Budget]. It rejects a further try if maxWaiters other calls try again, and
// otherwise asks the Budget.
func (c *dialing) Admit(last backoff.Verdict) (done func(backoff.Verdict), ok bool) {
	if c.full = last.Class != backoff.ClassOK && !c.waiters.join(&c.waiter); c.full {
		return nil, false
	}
	if c.Budget == nil {
		return nil, true
	}
	return c.Budget.Admit(last)
}

// errOthersWait is the cause of an error if maxWaiters other calls already try again.
var errOthersWait = fmt.Errorf("%w: other calls already try this address again,", backoff.ErrGaveUp)

// limited returns ctx with the limit on this try.
func (c *dialing) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := c.connectLimit(ctx)
	if limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, &limitError{"not connected", limit})
}

// notify completes p and calls OnProgress.
func (c *dialing) notify(p Progress) {
	if c.OnProgress == nil {
		return
	}
	p.Network, p.Address, p.Tries, p.Elapsed = c.Network, c.Address, c.Tries, time.Since(c.began)
	c.OnProgress(p)
}

// failure returns err as net.Dialer would return it.
func (c *dialing) failure(err error) error {
	if given, ok := err.(*net.OpError); ok {
		return given
	}
	if given, ok := err.(*retry.Error); ok {
		short := *given
		short.Err = c.shorten(given.Err)
		if c.full {
			short.Cause = errOthersWait
		}
		err = &short
	}
	return &net.OpError{Op: "dial", Net: c.Network, Addr: dialAddr{c.Network, c.Address}, Err: err}
}

// shorten returns err without the text that the error around it has already.
func (c *dialing) shorten(err error) error {
	inner, ok := err.(*net.OpError)
	if ok && inner.Op == "dial" && inner.Addr != nil && inner.Addr.String() == c.Address {
		return inner.Err
	}
	return err
}

// hopeless reports whether the address can never work.
func hopeless(err error) bool {
	return is[*net.AddrError](err) || is[*net.ParseError](err) || is[net.UnknownNetworkError](err) || is[net.InvalidAddrError](err)
}

// dialAddr is the network and address of a dial, as a net.Addr.
type dialAddr struct{ network, address string }

func (a dialAddr) Network() string { return a.network }
func (a dialAddr) String() string  { return a.address }
