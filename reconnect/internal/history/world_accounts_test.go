package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
)

// Several Conns share a gate and a server of their own, each with its account. For a long time the server limits the
// first account: it ends its session and rejects each next one.

// drawAccounts draws how many there are, from a stream of its own.
func (p *Plan) drawAccounts() {
	r := p.stream(29)
	if r.IntN(12) == 0 {
		p.Settings.Accounts = 2 + r.IntN(4)
	}
}

// accountsAddress is where their server is.
const accountsAddress = "accounts.test:80"

// accounts are the Conns, and what is known of them.
type accounts struct {
	w       *world
	network conntest.Network
	server  *conntest.Server
	gate    *budget.Gate
	conns   []*reconnect.Conn
	answer  int           // a status or a close code
	wait    time.Duration // for which the server asks, or 0

	mu       sync.Mutex // guards what follows
	limited  bool
	rejected []time.Duration  // when the first account was rejected
	sessions []int            // how many sessions of each account have ended after they were ready
	pipes    []*conntest.Pipe // the newest connection of each account, or nil
	lost     []int            // how many of these the network has ended
}

// limitAccount plays this beside the rest of a history.
func (w *world) limitAccount() {
	r := w.plan.stream(30)
	n := w.set.Accounts
	a := &accounts{w: w, sessions: make([]int, n), lost: make([]int, n), pipes: make([]*conntest.Pipe, n)}
	a.answer = []int{429, 4429}[r.IntN(2)]
	if r.IntN(2) == 0 {
		a.wait = time.Duration(1+r.IntN(60)) * time.Second
	}
	a.server = conntest.NewServer(&a.network, accountsAddress, a.serve)
	defer a.server.Close()
	a.server.Next(a.accept)
	var err error
	a.gate, err = budget.NewGate(&budget.GateOptions{Rand: w.source(5)})
	if err != nil {
		panic(err)
	}
	for i := range n {
		time.Sleep(upTo(r, 5*time.Second))
		c, err := reconnect.New(a.dialer(i), a.options(i))
		if err != nil {
			panic(err)
		}
		defer func() { c.Close(); <-c.Done() }()
		a.conns = append(a.conns, c)
	}
	time.Sleep(10*time.Second + upTo(r, time.Minute))
	a.limit(r)
}

// limit limits the first account for some time. The sessions of the others are lost now and then, and must be ready
// soon after that.
func (a *accounts) limit(r *rand.Rand) {
	a.mu.Lock()
	a.limited = true
	a.mu.Unlock()
	from, lasts := a.w.now(), 10*time.Minute+upTo(r, 20*time.Minute)
	a.reset(0)
	for a.w.now() < from+lasts {
		time.Sleep(upTo(r, 3*time.Minute))
		a.loseAndReturn(1 + r.IntN(len(a.conns)-1))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limited = false
	until := a.w.now()
	third := (until - from) / 3
	in := func(begin time.Duration) (n int) {
		for _, at := range a.rejected {
			if at >= begin && at < begin+third {
				n++
			}
		}
		return n
	}
	first, last := in(from), in(until-third)
	jitter := 2 + first/10 // the waits have grown to the cap of the policy before the first third is over
	a.w.claim(LimitedCostsLess, last <= first+jitter, "%d dials in the last %v, and %d in the first: %v",
		last, third, first, a.rejected)
	for i := range a.conns {
		a.w.claim(HealthyStay, i == 0 || a.sessions[i] <= a.lost[i],
			"%d sessions of account %d have ended, and the network has ended %d", a.sessions[i], i, a.lost[i])
	}
}

// loseAndReturn resets the connection of account i, and checks that another session is ready soon.
func (a *accounts) loseAndReturn(i int) {
	if a.conns[i].State() != reconnect.StateReady {
		a.w.claim(HealthyReturn, false, "account %d is %v", i, a.conns[i].State())
		return
	}
	at, last := a.w.now(), a.conns[i].Status().Session
	a.reset(i)
	const within = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	time.Sleep(time.Microsecond)
	err := a.conns[i].Await(ctx, reconnect.StateReady)
	now := a.conns[i].Status()
	a.w.claim(HealthyReturn, err == nil && now.Session > last,
		"account %d was lost at %v, and is not ready within %v, while another one gets %d with %v: %+v",
		i, at, within, a.answer, a.wait, now)
}

// reset resets the connection of account i, if there is one.
func (a *accounts) reset(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pipes[i]; p != nil && p.Live() {
		a.lost[i]++
		p.Reset()
	}
}

// dialer returns the dialer of account i.
func (a *accounts) dialer(i int) reconnect.Dialer {
	return &dialer.WebSocket{
		URL:         "ws://" + accountsAddress + "/" + itoa(i),
		DialContext: a.network.DialContext,
		Rand:        a.w.source(uint64(100 + i)),
	}
}

// options returns the options of account i.
func (a *accounts) options(i int) *reconnect.Options {
	return &reconnect.Options{
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if err := o.Write(conn.TextMessage("login")); err != nil {
				return err
			}
			_, err := o.Read()
			return err
		},
		OnMessage: func(context.Context, reconnect.Message) {},
		Run: reconnect.RunOptions{
			Gate: a.gate,
			Rand: a.w.source(uint64(200 + i)),
			Trace: &reconnect.Trace{SessionDone: func(e reconnect.SessionDone) {
				a.mu.Lock()
				defer a.mu.Unlock()
				if e.Ready > 0 {
					a.sessions[i]++
				}
			}},
		},
	}
}

// accept answers a handshake.
func (a *accounts) accept(rw http.ResponseWriter, q *http.Request) {
	if a.answer != http.StatusTooManyRequests || !a.rejects(q) {
		a.server.Accept(rw, q)
		return
	}
	if a.wait > 0 {
		rw.Header().Set("Retry-After", itoa(int(a.wait.Seconds())))
	}
	rw.WriteHeader(a.answer)
}

// serve serves a connection, unless its account is limited.
func (a *accounts) serve(ctx context.Context, c *websocket.Conn, q *http.Request) {
	if _, _, err := c.Read(ctx); err != nil {
		return
	}
	if a.rejects(q) {
		reason := ""
		if a.wait > 0 {
			reason = fmt.Sprintf("redial/1 wait=%d", int(a.wait.Seconds()))
		}
		c.Close(websocket.StatusCode(a.answer), reason)
		return
	}
	a.mu.Lock()
	a.pipes[account(q)] = conntest.PipeOf(ctx)
	a.mu.Unlock()
	if c.Write(ctx, websocket.MessageText, []byte("welcome")) == nil {
		conntest.Discard(ctx, c, q)
	}
}

// account returns the number of the account of a handshake.
func account(q *http.Request) int { return atoi(strings.TrimPrefix(q.URL.Path, "/")) }

// rejects reports whether the server limits the account of a handshake, and notes that.
func (a *accounts) rejects(q *http.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.limited || account(q) > 0 {
		return false
	}
	a.rejected = append(a.rejected, a.w.now())
	return true
}

// The invariants that are checked here.
const (
	LimitedCostsLess Invariant = "3: an account that is limited for long is never dialed more often than at first"
	HealthyStay      Invariant = "gate: no session ends because another account is limited"
	HealthyReturn    Invariant = "gate: a session that is lost is replaced soon although another account is limited"
)
