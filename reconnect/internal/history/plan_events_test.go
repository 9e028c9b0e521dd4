package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// happening is a kind of event.
type happening struct {
	name   string
	weight int
	do     func(w *world, r *rand.Rand, e Event)
}

// allKinds are the kinds of events: what the user does, what the server does, and what happens in
// the network.
var allKinds = []happening{
	{"write", 4, func(w *world, r *rand.Rand, e Event) {
		limit := upTo(r, 5*time.Second) + 1
		if r.IntN(6) == 0 {
			limit = 1
		}
		w.write(context.Background(), r, fmt.Sprint("w", e.Index), limit)
	}},
	{"send", 4, func(w *world, r *rand.Rand, e Event) { w.sendSome(r, e, 1) }},
	{"sends", 3, func(w *world, r *rand.Rand, e Event) { w.sendSome(r, e, 1+r.IntN(20)) }},
	{"send and wait", 2, func(w *world, r *rand.Rand, e Event) {
		w.send(r, fmt.Sprint("v", e.Index), 1+upTo(r, 5*time.Second))
	}},
	{"kick", 2, func(w *world, r *rand.Rand, e Event) { w.push(); w.conn.Kick() }},
	{"redial", 1, func(w *world, r *rand.Rand, e Event) { w.redial() }},
	{"rotate", 3, func(w *world, r *rand.Rand, e Event) { w.rotate(r) }},
	{"check", 2, func(w *world, r *rand.Rand, e Event) { w.callCheck() }},
	{"watch", 1, (*world).watch},
	{"look", 1, func(w *world, r *rand.Rand, e Event) {
		w.conn.Status()
		s := w.conn.Stats()
		limit := w.set.InboxMessages
		if limit == 0 {
			limit = 64
		}
		w.claim(InboxBounded, w.set.Reader == readPush || int(s.Unread) <= limit || w.hasRotated(), "%d unread of %d", s.Unread, limit)
	}},
	{"slow reader", 2, func(w *world, r *rand.Rand, e Event) {
		d := upTo(r, 10*time.Second)
		if w.set.Reader == readPush {
			w.actNext("OnMessage", func(context.Context) { time.Sleep(d) })
			return
		}
		w.mu.Lock()
		w.readPause = w.now() + d
		w.mu.Unlock()
	}},
	{"callback", 4, func(w *world, r *rand.Rand, e Event) {
		name := callbacks[r.IntN(len(callbacks))]
		act := w.act(r, e, name)
		w.actNext(name, act)
	}},
	{"goexit", 1, func(w *world, r *rand.Rand, e Event) {
		switch r.IntN(8) {
		case 0, 4:
			w.actNext("OnSession", w.goexit("OnSession"))
		case 1:
			all := append([]string{"DialDone", "DialHung", "SessionStart", "WaitDone", "RotateDone", "ProbeDone", "SlowHandler"}, callbacks...)
			name := all[r.IntN(len(all))]
			w.actNext(name, w.goexit(name))
		}
	}},

	{"refuse", 2, func(w *world, r *rand.Rand, e Event) { w.network.Fault(address, w.dialFault(r), conntest.Fault{}) }},
	{"refuse some", 1, func(w *world, r *rand.Rand, e Event) {
		f := w.dialFault(r)
		w.network.Fault(address, f, f, f, conntest.Fault{})
	}},
	{"answer", 3, func(w *world, r *rand.Rand, e Event) { w.server.Next(w.answer(r), nil) }},
	{"answers", 1, func(w *world, r *rand.Rand, e Event) { w.server.Next(w.answer(r), w.answer(r), w.answer(r), nil) }},
	{"gone", 1, func(w *world, r *rand.Rand, e Event) {
		if r.IntN(6) == 0 && w.set.Framing == 0 {
			w.allowEnd("410")
			w.server.Next(conntest.Status(410, nil), nil)
		}
	}},
	{"kill", 2, func(w *world, r *rand.Rand, e Event) {
		w.oneByOne("kill", func(p *conntest.Pipe) { p.Cut(conntest.Both, 0) })
		for _, p := range w.network.Conns(address) { // those that have come meanwhile
			if !w.had(p, "kill") {
				w.note(p, "kill")
			}
		}
		w.server.Close()
		time.Sleep(upTo(r, 8*time.Second))
		w.server.Start()
	}},
	{"disconnect", 2, func(w *world, r *rand.Rand, e Event) { w.disconnect(r) }},
	{"silence", 2, func(w *world, r *rand.Rand, e Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.silentUntil = w.now() + upTo(r, 40*time.Second)
	}},
	{"pings", 1, func(w *world, r *rand.Rand, e Event) {
		if p := w.pipe(r, "pings"); p != nil && w.set.Framing == 0 && !w.set.TLS && !w.had(p, "window") { // what is put between two writes would be inside a frame
			for range 1 + r.IntN(200) {
				w.inject(p, conntest.Frame{Head: conntest.Fin | ping, Payload: []byte("hi")})
			}
		}
	}},

	{"reset", 3, func(w *world, r *rand.Rand, e Event) { w.fault(r, "reset", (*conntest.Pipe).Reset) }},
	{"fin", 2, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "fin", func(p *conntest.Pipe) { p.FIN(conntest.ToClient) })
	}},
	{"half-close", 1, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "half-close", func(p *conntest.Pipe) { p.FIN(conntest.ToServer) })
	}},
	{"cut now", 1, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "cut now", func(p *conntest.Pipe) { p.Cut(conntest.Both, 0) })
	}},
	{"cut", 2, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "cut", func(p *conntest.Pipe) { p.Cut(way(r), r.Int64N(3000)) })
	}},
	{"cut and reset", 1, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "cut and reset", func(p *conntest.Pipe) { p.CutReset(way(r), r.Int64N(3000)) })
	}},
	{"stall", 2, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "stall", func(p *conntest.Pipe) { p.Stall(conntest.Direction(1 + r.IntN(3))) })
	}},
	{"stall for a while", 1, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "stall", func(p *conntest.Pipe) {
			p.Stall(conntest.Both)
			time.Sleep(upTo(r, 20*time.Second))
			w.thaw(p)
		})
	}},
	{"latency", 1, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "latency", func(p *conntest.Pipe) { p.Latency(way(r), upTo(r, 3*time.Second)) })
	}},
	{"trickle", 1, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "trickle", func(p *conntest.Pipe) { p.Trickle(way(r), 1+r.IntN(2000), 10*time.Millisecond) })
	}},
	{"window", 1, func(w *world, r *rand.Rand, e Event) {
		w.fault(r, "window", func(p *conntest.Pipe) { p.Window(way(r), r.IntN(5000)) })
	}},
	{"suspend", 1, func(w *world, r *rand.Rand, e Event) { // everything that is under way stands still
		pipes := w.oneByOne("suspend", func(p *conntest.Pipe) { p.Stall(conntest.Both) })
		time.Sleep(upTo(r, 10*time.Second))
		w.thaw(pipes...)
	}},
}

var kinds = func() map[string]happening {
	byName := make(map[string]happening)
	for _, k := range slices.Concat(allKinds, networkKinds, refusedKinds) {
		byName[k.name] = k
	}
	for _, group := range []struct {
		kinds   []happening
		drawn   func(*Settings) bool // otherwise Plan.Without has taken the kinds from the plan
		outlast bool                 // they also happen when the faults have ended
	}{
		{oddKinds, func(s *Settings) bool { return s.Odd }, true},
		{lastingKinds, func(s *Settings) bool { return s.Lasts }, false},
		{dueKinds, func(s *Settings) bool { return s.Dues }, false},
		{turnedKinds, func(s *Settings) bool { return s.Turns }, false},
		{resetKinds, func(s *Settings) bool { return s.Resets }, false},
		{limitKinds, func(s *Settings) bool { return s.Limits }, false},
	} {
		for _, k := range group.kinds {
			byName[k.name] = happening{k.name, k.weight, func(w *world, r *rand.Rand, e Event) {
				if group.drawn(&w.set) && (group.outlast || !w.calmed.Load()) {
					k.do(w, r, e)
				}
			}}
		}
	}
	for _, k := range []happening{
		aboveStep, tornBatch, wrong, awaitSession, burst, anyCallback, floodAndRotate, tooLarge, callsMore,
	} {
		byName[k.name] = k
	}
	return byName
}()

// way draws one of the two directions.
func way(r *rand.Rand) conntest.Direction { return conntest.Direction(1 + r.IntN(2)) }

// pipe returns one of the live connections, and notes a fault of it. It returns nil if there is none.
func (w *world) pipe(r *rand.Rand, kind string) *conntest.Pipe {
	pipes := w.network.Conns(address)
	if len(pipes) == 0 || w.calmed.Load() {
		return nil
	}
	p := pipes[r.IntN(len(pipes))]
	w.note(p, kind)
	return p
}

// note notes a fault of a connection.
func (w *world) note(p *conntest.Pipe, kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rec := w.piped(p)
	rec.faults = append(rec.faults, fault{kind, w.now()})
}

// had reports whether a connection had a fault of a kind.
func (w *world) had(p *conntest.Pipe, kind string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.piped(p).faults, func(f fault) bool { return f.kind == kind })
}

func (w *world) fault(r *rand.Rand, kind string, do func(p *conntest.Pipe)) {
	if p := w.pipe(r, kind); p != nil {
		do(p)
	}
}

// oneByOne makes a fault of each connection, one after the other, because what follows from each must be over
// before the next if a history is to replay.
func (w *world) oneByOne(kind string, do func(p *conntest.Pipe)) []*conntest.Pipe {
	pipes := w.network.Conns(address)
	w.each(pipes, kind, do)
	return pipes
}

// each is oneByOne for some connections.
func (w *world) each(pipes []*conntest.Pipe, kind string, do func(p *conntest.Pipe)) {
	for _, p := range pipes {
		w.note(p, kind)
		do(p)
		time.Sleep(time.Microsecond)
	}
}

// thaw ends the stall of connections, unless the faults are over: then they are dead.
func (w *world) thaw(pipes ...*conntest.Pipe) {
	if w.calmed.Load() {
		return
	}
	for _, p := range pipes {
		w.mu.Lock()
		w.piped(p).thawed = true
		w.mu.Unlock()
		p.Thaw(conntest.Both)
		time.Sleep(time.Microsecond)
	}
}

// sendSome sends messages.
func (w *world) sendSome(r *rand.Rand, e Event, n int) {
	for i := range n {
		w.send(r, fmt.Sprintf("s%d.%d", e.Index, i), 0)
		time.Sleep(1 + upTo(r, 50*time.Microsecond)) // so that what follows from one message is over before the next, and a history replays
	}
}

// push notes that we allow a dial more, which no mirror knows.
func (w *world) push() {
	w.pushRotation()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mirror != nil {
		w.mirror.dead = true
	}
	clear(w.dialing) // a dial beside which a kick begins another may go on
}

// pushRotation notes that we allow a dial more, in a rotation.
func (w *world) pushRotation() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pushes = append(w.pushes, w.now())
}

func (w *world) redial() {
	w.push()
	n := w.conn.Status().Session
	w.mu.Lock()
	w.meddled[n] = true
	w.mu.Unlock()
	w.conn.Redial(n, errRedial)
}

var errRedial = errors.New("the user dials again")

func (w *world) rotate(r *rand.Rand) {
	w.pushRotation()
	n := w.conn.Status().Session
	var a reconnect.Advice
	switch r.IntN(4) {
	case 0:
		a.Wait, a.Spread = upTo(r, 3*time.Second), upTo(r, 3*time.Second)
	case 1:
		a.By = time.Now().Add(upTo(r, 20*time.Second))
	}
	w.advise(&a)
	w.mu.Lock()
	w.meddled[n] = true
	w.mu.Unlock()
	w.conn.Rotate(n, a)
}

// callCheck calls Check.
func (w *world) callCheck() {
	w.mu.Lock()
	w.checked = w.now()
	w.mu.Unlock()
	w.theConn().Check()
}

// hasRotated reports whether there was a rotation: then the inbox may get the messages that were held besides.
func (w *world) hasRotated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rotated
}

func (w *world) allowEnd(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mayEnd = why
}

// disconnect lets the server close its connections, with a close code.
func (w *world) disconnect(r *rand.Rand) {
	code := []int{1000, 1001, 1012, 1013, 4000}[r.IntN(5)]
	reason := []string{"", "see you", "redial/1 wait=2s spread=1s", "redial/1 wait=nonsense"}[r.IntN(4)]
	w.closeAll(code, func() string {
		var a reconnect.Advice
		if strings.HasPrefix(reason, "redial/1") {
			w.advise(&a)
		}
		if a.URL == "" {
			return reason
		}
		return reason + fmt.Sprintf(" url=%s hint=%v", a.URL, a.Hint)
	})
}

// closeAll lets the server close its connections, if they are WebSockets, each with a reason of its own.
func (w *world) closeAll(code int, reason func() string) {
	s, ok := w.server.(*conntest.Server)
	if !ok {
		return
	}
	for _, c := range s.Conns() {
		w.mu.Lock()
		rec := w.piped(w.pipeOf[c])
		rec.faults = append(rec.faults, fault{"close " + itoa(code), w.now()})
		w.mu.Unlock()
		why := reason()
		w.users.Go(func() { c.Close(websocket.StatusCode(code), why) })
		time.Sleep(time.Microsecond)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// callbacks are where the user may act.
var callbacks = []string{"OnSession", "OnMessage", "OnSeam", "OnReceipt", "Keep", "SessionReady", "SessionDone", "DialStart", "WaitStart", "RotateStart", "ProbeStart"}

// actNext plans what the next call of a callback does.
func (w *world) actNext(name string, act func(ctx context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[name] = act
}

// act draws what a callback does.
func (w *world) act(r *rand.Rand, e Event, name string) func(ctx context.Context) {
	d := upTo(r, 3*time.Second)
	n := r.IntN(8)
	if hook := name == "WaitStart" || name == "DialStart"; hook && (n == 4 || n == 5 || n == 7) {
		n = 6 // a hook that waits holds up the wait that follows
	}
	switch n {
	case 0:
		return func(context.Context) { w.push(); w.theConn().Kick() }
	case 1:
		return func(context.Context) { w.redial() }
	case 2:
		return func(context.Context) { w.rotate(r) }
	case 3:
		return func(context.Context) { w.callCheck() }
	case 4:
		return func(context.Context) { w.sendSome(r, e, 1+r.IntN(3)) }
	case 5:
		return func(ctx context.Context) {
			if ctx == nil {
				ctx = context.Background()
			}
			w.write(ctx, r, fmt.Sprint("c", e.Index), 1+d)
		}
	case 6:
		if r.IntN(6) == 0 {
			return func(context.Context) {
				w.allowEnd("Close in " + name)
				w.closes()
			}
		}
		return func(context.Context) { w.theConn().Status(); w.theConn().Stats() }
	}
	return func(context.Context) { time.Sleep(d) }
}

// theConn returns the Conn, also in a callback that runs before New has returned.
func (w *world) theConn() *reconnect.Conn {
	for {
		w.mu.Lock()
		c := w.conn
		w.mu.Unlock()
		if c != nil {
			return c
		}
		time.Sleep(time.Microsecond)
	}
}

// answer draws the answer of the server to a handshake.
func (w *world) answer(r *rand.Rand) conntest.Answer {
	s, ok := w.server.(*conntest.Server)
	if !ok {
		return nil
	}
	after := []http.Header{
		nil, conntest.RetryAfter(itoa(r.IntN(20))), conntest.RetryAfter("soon"), conntest.RetryAfter("-5"),
		conntest.RetryAfter(time.Now().Add(upTo(r, 20*time.Second)).UTC().Format(http.TimeFormat)), nil,
	}[r.IntN(6)]
	if r.IntN(200) == 0 {
		after = conntest.RetryAfter("99999999")
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		code := []int{400, 401, 403, 404, 407, 408, 421, 425, 426, 429, 500, 501, 502, 503, 504, 200, 204, 302}[r.IntN(18)]
		w.mu.Lock()
		w.statuses[code] = true
		w.mu.Unlock()
		return conntest.Status(code, after)
	case 3:
		return conntest.Hang
	case 4:
		return conntest.HangUp
	case 5:
		return conntest.BadAccept
	case 6:
		late := upTo(r, 20*time.Second)
		return func(w http.ResponseWriter, q *http.Request) { time.Sleep(late); s.Accept(w, q) }
	case 7:
		n := 1 + r.IntN(500)
		return func(rw http.ResponseWriter, q *http.Request) {
			p := conntest.PipeOf(q.Context())
			w.note(p, "trickle")
			p.Trickle(conntest.ToClient, n, 100*time.Millisecond)
			s.Accept(rw, q)
		}
	case 8:
		return conntest.Garbage([]byte("HTTP/1.1 999 what\r\n\r\n\x00\xff"))
	}
	return []conntest.Answer{
		s.AcceptWith(conntest.CloseWith(1012, "restart")), s.AcceptWith(conntest.NeverRead),
		s.AcceptWith(func(context.Context, *websocket.Conn, *http.Request) {}),
	}[r.IntN(3)]
}

// dialFault draws a fault of a dial.
func (w *world) dialFault(r *rand.Rand) conntest.Fault {
	late, size := upTo(r, 20*time.Second), r.Int64N(2000)
	return []conntest.Fault{
		{Err: syscall.ECONNREFUSED}, {Hang: true}, {Drop: true},
		{Delay: late}, {Delay: late, IgnoresContext: true}, {Delay: late, CompletesAnyway: true},
		{Err: &net.DNSError{Err: "no such host", Name: "feed.test"}}, {AcceptDelay: late},
		{OnConn: func(p *conntest.Pipe) { w.note(p, "cut"); p.Cut(way(r), size) }},
	}[r.IntN(9)]
}
