package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// In a plan with Odd a user makes mistakes (a message that no frame can hold, a message for a session that has ended, a close code that
// is reserved), and a server says more than it should.

// drawOdd draws whether there is anything odd, from a stream of its own.
func (p *Plan) drawOdd() {
	r := p.stream(15)
	if r.IntN(2) > 0 {
		return
	}
	p.Settings.Odd = true
	for range 1 + r.IntN(6) {
		p.Events = append(p.Events, Event{len(p.Events), 1 + upTo(r, p.Length), oddKinds[r.IntN(len(oddKinds))].name})
	}
	slices.SortStableFunc(p.Events, func(a, b Event) int { return int(a.At - b.At) })
}

// oddKinds are its events.
var oddKinds = []happening{
	{"await", 0, (*world).await},
	{"bad message", 0, func(w *world, r *rand.Rand, e Event) {
		m := w.newMessage(r, fmt.Sprint("b", e.Index))
		w.mu.Lock()
		if w.set.Framing == 1 {
			m.bad, m.out.Message = true, conn.TextMessage(m.id+" \n"+strings.Repeat("x", m.size))
		}
		w.mu.Unlock()
		w.sendMessage(r, m, 0)
	}},
	{"ended session", 0, func(w *world, r *rand.Rand, e Event) {
		m := w.newMessage(r, fmt.Sprint("e", e.Index))
		w.mu.Lock()
		if w.started > 0 {
			m.out.Session = w.started - 1 // while the first session is the only one: 0, which means any
		}
		w.mu.Unlock()
		w.sendMessage(r, m, 0)
	}},
	{"redial with a code", 0, func(w *world, r *rand.Rand, e Event) {
		w.push()
		n := w.conn.Status().Session
		w.mu.Lock()
		w.meddled[n] = true
		w.mu.Unlock()
		w.conn.Redial(n, codeError([]int{0, 999, 1000, 1004, 1005, 1006, 1011, 1014, 1015, 1016, 2999, 3000, 4999, 5000, 65536}[r.IntN(15)]))
	}},
	{"name server", 0, func(w *world, r *rand.Rand, e Event) {
		f := conntest.Fault{Err: &net.DNSError{Err: "server misbehaving", Name: "feed.test", IsNotFound: r.IntN(2) == 0, IsTemporary: r.IntN(2) == 0, IsTimeout: r.IntN(2) == 0}}
		w.network.Fault(address, f, f, conntest.Fault{})
	}},
	{"talkative refusal", 0, func(w *world, r *rand.Rand, e Event) {
		code := []int{400, 403, 429, 500, 503}[r.IntN(5)]
		head := r.IntN(60_000)
		w.server.Next(func(rw http.ResponseWriter, q *http.Request) {
			rw.Header().Set("Content-Type", "text/plain")
			rw.Header().Set("X-Talk", strings.Repeat("x", head))
			w.mu.Lock()
			w.refusals = append(w.refusals, refusal{code: code})
			w.log("answer %d", code)
			w.mu.Unlock()
			rw.WriteHeader(code)
			_, password, _ := q.BasicAuth()
			fmt.Fprint(rw, []string{"not with " + password, "not with " + q.Header.Get("X-Token"), "not by " + q.URL.String(), "go away"}[head%4])
		}, nil)
	}},
}

// codeError is an error with a close code.
type codeError int

func (e codeError) Error() string  { return fmt.Sprint("an error with the close code ", int(e)) }
func (e codeError) CloseCode() int { return int(e) }

// await waits until a session is ready, as a program does that should fail at its start.
func (w *world) await(r *rand.Rand, _ Event) {
	limit := 1 + upTo(r, 20*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	at := w.now()
	err := w.conn.AwaitReady(ctx)
	ended, failed := errors.AsType[*reconnect.AwaitError](err)
	if err == nil {
		w.wasReady(at)
		return
	}
	if w.ending() || w.hasEnded() {
		return
	}
	if !failed {
		w.claim(AwaitIsTrue, false, "AwaitReady: %v", err)
		return
	}
	_, nameless := errors.AsType[*net.DNSError](ended.Status.Err)
	mend := ended.Status.Verdict >= backoff.ClassSlow && !nameless
	switch {
	case ended.Cause != nil:
		w.claim(AwaitIsTrue, w.now() == at+limit, "AwaitReady has the error of a context after %v of %v", w.now()-at, limit)
		w.claim(AwaitIsTrue, !mend, "AwaitReady has waited for %v with %v: %v", limit, err, ended.Status.Verdict)
	default:
		w.claim(AwaitIsTrue, mend, "AwaitReady ends with %v: %v", err, ended.Status.Verdict)
	}
}

// wasReady checks an Await for StateReady that has begun at a time and has no error: at some moment since then a session was ready. When
// OnSession has returned a session may be, and SessionReady comes after that.
func (w *world) wasReady(since time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready := false
	for _, s := range w.sessions {
		ready = ready || s.opened && (s.lostAt < 0 || s.lostAt >= since)
	}
	w.check(AwaitIsTrue, ready, "an Await has ended, and no session was ready since %v", since)
}

// badly writes a message that no frame can hold, if the plan has such messages, and checks that this does no harm.
func (w *world) badly(write func(conn.Message) error) {
	if !w.set.Odd || w.set.Framing != 1 {
		return
	}
	w.claim(BadIsBad, write(conn.TextMessage("bad\n")) != nil, "a message with a line feed was written")
}

// clientKept checks the error with which the server has read the end of a connection, or of a message: the client has kept to the
// protocol. If not, the error of coder/websocket says what it has "received", or that what was compressed is "corrupt", as it also says
// when the connection has ended inside that.
func (w *world) clientKept(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := conntest.PipeOf(ctx)
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		w.check(ClientKeeps, !slices.Contains([]int{1005, 1006, 1015}, int(e.Code)), "the server reads %v", err)
		w.piped(p).closed = int(e.Code)
		return
	}
	w.piped(p).stopped = ctx.Err() != nil
	broken := strings.Contains(err.Error(), "received ") || strings.Contains(err.Error(), "corrupt") && len(w.piped(p).faults) == 0 && p.Live()
	w.check(ClientKeeps, !broken, "the server reads %v", err)
}
