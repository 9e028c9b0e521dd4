package history

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// address is where the server is.
const address = "feed.test:80"

// secret and token must not appear in an error.
const (
	secret = "hunter2"
	token  = "swordfish"
)

// world is one run of a plan.
type world struct {
	plan    *Plan
	set     Settings
	start   time.Time
	network *conntest.Network
	server  server
	gate    *watchedGate // nil: there is none
	conn    *reconnect.Conn
	above   above
	over    chan struct{} // closed when the users are to end
	users   sync.WaitGroup
	reader  chan struct{} // closed when the reader has ended, or nil
	calmed  atomic.Bool   // the faults are over
	closed  atomic.Bool   // Close has returned

	sending sync.Mutex // held while a message is given to Send, so that the order of acceptance is known

	mu     sync.Mutex // guards what follows
	result Result
	recordOf
}

// Run runs a plan in virtual time. A bubble begins in the year 2000, before the start of the process, where each link.Instant is
// negative. Half of the histories begin later, as programs do.
func Run(t *testing.T, p *Plan) (r Result) {
	synctest.Test(t, func(*testing.T) {
		if p.Seed%2 == 1 {
			time.Sleep(time.Until(time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
		w := newWorld(p)
		w.run()
		r = w.result
	})
	return r
}

func newWorld(p *Plan) *world {
	w := &world{
		plan: p, set: p.Settings, start: time.Now(), network: new(conntest.Network), over: make(chan struct{}),
		result:   Result{Stakes: make(map[Invariant]int), Events: make(map[string]int)},
		recordOf: newRecord(),
	}
	w.above = w.newAbove()
	return w
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// log adds a line to the trace. The caller holds w.mu.
func (w *world) log(format string, args ...any) {
	w.result.Trace = append(w.result.Trace, fmt.Sprintf("%015d ", w.now())+fmt.Sprintf(format, args...))
}

// run runs the plan from the first dial to the end of the Conn.
func (w *world) run() {
	w.server = w.newServer()
	w.mirror = w.newMirror()
	if w.set.Gate {
		w.gate = w.newGate()
	}
	c, err := reconnect.New(w.dialer(), w.options())
	if err != nil {
		w.claim(NothingLeft, false, "New: %v", err)
		w.server.Close()
		return
	}
	w.mu.Lock()
	w.conn = c
	w.mu.Unlock()
	if w.set.Reader != readPush && w.set.InboxOverflow != 3 {
		w.reader = make(chan struct{})
		w.users.Go(w.read)
	}
	// Let things happen.
	length := w.plan.Length
	if w.set.Early {
		length = upTo(w.plan.stream(1), length)
	}
	w.rivals()
	if w.set.Accounts > 0 {
		w.users.Go(w.limitAccount)
	}
	for _, e := range w.plan.Events {
		if e.At < length {
			w.users.Go(func() { w.happen(e) })
		}
	}
	time.Sleep(length)
	// Without faults the Conn recovers.
	if !w.set.Early {
		if w.set.Late > 0 {
			w.answerLate()
		}
		w.calm()
		w.recover()
		if !w.hasEnded() {
			w.above.rest()
			w.pause(time.Millisecond) // for what has begun at this instant
		}
	}
	w.end()
	w.above.over()
	close(w.over)
	w.server.Close() // also ends a Close of coder/websocket that waits for the rest of a frame which was cut
	w.users.Wait()
	w.server.Close() // which a kill has started again
	synctest.Wait()
	w.finish()
}

// happen lets one event happen at its time.
func (w *world) happen(e Event) {
	if w.spares(e.Kind) {
		return
	}
	time.Sleep(e.At - w.now())
	w.mu.Lock()
	w.log("event %d %s", e.Index, e.Kind)
	w.result.Events[e.Kind]++
	w.mu.Unlock()
	kinds[e.Kind].do(w, w.plan.stream(100+uint64(e.Index)), e)
}

// calm ends the faults.
func (w *world) calm() {
	w.mu.Lock()
	w.log("calm")
	w.silentUntil = 0
	w.mu.Unlock()
	w.calmed.Store(true)
	w.network.Fault(address)
	w.server.Next()
	w.server.Start()
	switch {
	case w.set.Unlimited: // nobody else tells the Conn of a server that has ended during a stall
		w.each(w.network.Unclosed(), "calm", (*conntest.Pipe).Reset)
		return
	case !w.set.FaultsStay:
		w.oneByOne("calm", (*conntest.Pipe).Reset)
		return
	}
	w.dead = w.oneByOne("calm", func(p *conntest.Pipe) { p.Stall(conntest.Both) })
}

// settling is the longest time for which a client may stay away without a Retry-After: a limit on connecting, and the waits
// of ClassSlow.
const settling = 20 * time.Minute

// recover requires a session that stays.
func (w *world) recover() {
	if w.hasEnded() {
		return
	}
	w.pause(10*time.Second + 9*w.silence()) // 10 s for a callback or a reader that pauses
	for _, p := range w.dead {
		w.mu.Lock()
		if s := w.sessions[w.piped(p).session]; s != nil && s.ready { // a handshake that hangs is kept
			w.check(DeathIsNoticed, !p.Live(), "%v is still in use", p)
		}
		w.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), settling+w.patience())
	defer cancel()
	at := w.now()
	if err := w.conn.Await(ctx, reconnect.StateReady); w.hasEnded() {
		return
	} else if w.claim(Recovers, err == nil, "%v, %+v", err, w.conn.Status()); err != nil {
		return
	}
	w.wasReady(at)
	w.pause(30 * time.Second) // until a rotation is over
	before, events := w.standing(), w.events()
	w.mu.Lock()
	rotating := w.rotating() || w.acted && w.set.Logins > 0 // a rotation may wait for a login
	w.mu.Unlock()
	w.beginQuiet()
	w.pause(time.Minute)
	if w.hasEnded() {
		return
	}
	if after := w.standing(); w.set.RotateAfter == 0 {
		w.endQuiet()
		w.reservationsEnd()
		w.claim(Stays, before == after || rotating, "%v was %v", after, before)
		happened := w.events() - events
		w.claim(Quiet, happened < 400, "%d events", happened)
	}
	w.markCame()
	w.sayNothing()
	// A message gets through.
	if err := w.conn.Await(ctx, reconnect.StateReady); err != nil {
		return
	}
	w.write(context.Background(), w.plan.stream(7), "last", 2*time.Minute)
	w.pause(time.Second + 4*w.set.Lag)
	w.sendLast()
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.messages["last"]
	w.check(LastMessageArrives, w.set.RotateAfter != 0 || len(m.fates) == 1 && m.fates[0] == reconnect.FateWritten && len(m.arrivals) == 1,
		"fates %v, arrivals %v, %v", m.fates, m.arrivals, m.err)
}

// pause waits for d, or until the Conn has ended.
func (w *world) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.conn.Done():
	}
}

// hasEnded reports whether the Conn has ended by itself, which it may if there was a reason.
func (w *world) hasEnded() bool {
	select {
	case <-w.conn.Done():
		return true
	default:
		return w.conn.State() == reconnect.StateClosed
	}
}

// standing is what must not change while nothing happens.
func (w *world) standing() string {
	return fmt.Sprint(w.conn.Status().Session, len(w.network.Dials(address)))
}

func (w *world) events() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.result.Trace) - w.traffic
}

// patience is the longest time that the server has asked for.
func (w *world) patience() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(0, w.notBefore-w.now(), w.gated-w.now())
}

// dialer returns a dialer with a secret in it.
func (w *world) dialer() reconnect.Dialer {
	limits := conn.Limits{
		WriteTimeout:   w.set.WriteTimeout,
		MessageTimeout: w.set.MessageTimeout,
		ReadLimit:      int64(w.set.readLimit()),
	}
	switch w.set.Framing {
	case 1:
		return &dialer.Framed{Address: address, Framer: conn.Lines{}, DialContext: w.dial, Conn: conn.FramedOptions{Limits: limits}, Rand: w.source(3)}
	case 2:
		return &dialer.Framed{Address: address, Framer: w.set.prefix(), DialContext: w.dial, Conn: conn.FramedOptions{Limits: limits}, Rand: w.source(3)}
	}
	scheme := "ws"
	if w.set.TLS {
		scheme = "wss"
	}
	d := &dialer.WebSocket{FollowHint: followHint, URL: scheme + "://user:" + secret + "@feed.test:80/v1?token=" + secret, DialContext: w.dial, Conn: conn.WebSocketOptions{Limits: limits}, Rand: w.source(3)}
	if w.set.TLS {
		_, d.TLS = secure()
	}
	if w.set.Odd {
		d.Header = http.Header{"X-Token": {token}}
	}
	if w.set.Compression {
		d.Compression = websocket.CompressionContextTakeover
	}
	return d
}

// dial dials on the network, with the lag of the plan.
func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n := backoff.AttemptFrom(ctx).Number
	if w.set.Apart {
		time.Sleep(readTakes(n)) // a Close in a hook has ended ctx by then
	}
	if err := w.atAdvised(ctx, network, addr); err != nil {
		return nil, err
	}
	nc, err := w.network.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.mirror.connected(n)
	w.mu.Unlock()
	for _, p := range w.network.Conns(address) {
		if p.Client() != nc {
			continue
		}
		if w.set.Lag > 0 {
			p.Latency(conntest.ToServer, w.set.Lag)
			p.Latency(conntest.ToClient, w.set.Lag+time.Microsecond)
		}
		if w.set.Apart {
			apart(p, w.set.Lag, n)
			nc = &slowly{nc, readTakes(n)}
		}
		if w.set.Hears {
			return &halfCloser{&located{nc, w, p}}, nil
		}
		return &located{nc, w, p}, nil
	}
	return nc, nil // it has ended already
}

// The policies.
const policies = 3

func (w *world) policy() backoff.Policy {
	switch w.set.Policy {
	case 1:
		if w.set.Eager {
			return recorded{eager{}, w}
		}
		return recorded{&backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}, w}
	case 2:
		return recorded{&backoff.Exponential{Base: 500 * time.Millisecond, Cap: 8 * time.Second, Jitter: backoff.JitterEqual}, w}
	}
	return nil
}

// cap is the longest draw of the policy; 0: not known.
func (w *world) cap() time.Duration {
	return []time.Duration{0, time.Second, 8 * time.Second}[w.set.Policy]
}

// options returns the options of the Conn.
func (w *world) options() *reconnect.Options {
	s := w.set
	o := &reconnect.Options{
		OnSession: w.login, OpenTimeout: s.OpenTimeout, WhenDown: reconnect.WhenDown(s.WhenDown),
		KeepAlive:    reconnect.KeepAlive{Every: s.KeepAlive},
		Layers:       []*reconnect.Layer{{Lost: w.layerLost, End: w.layerEnd}},
		Resumable:    s.Resumable,
		MarkRefetch:  s.MarkRefetch,
		Rotate:       reconnect.Rotation{After: s.RotateAfter, Overlap: reconnect.Overlap(s.Overlap), Drain: s.Drain},
		Liveness:     reconnect.Liveness{Limit: s.Silence, ProbeEvery: s.ProbeEvery},
		Stall:        reconnect.Stall{Limit: s.Stall},
		CloseTimeout: s.CloseTimeout,
	}
	if s.ShortDrain > 0 {
		o.Rotate.Drain = s.ShortDrain
	}
	if s.Unlimited {
		o.Liveness.Limit = -1
	}
	w.withClock(&o.Liveness)
	if s.OneConnection {
		o.Rotate.Overlap = reconnect.OverlapBreakFirst
	}
	o.Run = reconnect.RunOptions{
		Policy: w.policy(), Classify: w.classify, OneConnection: s.OneConnection, StartSpread: s.StartSpread, StableAfter: s.StableAfter,
		Logins: w.budget(), Rand: w.source(2), Trace: w.trace(),
	}
	if s.Gate {
		o.Run.Gate = w.gate
	}
	if s.Reader == readPush {
		o.OnMessage, o.OnSeam = w.onMessage, w.onSeam
	} else {
		o.Inbox = reconnect.Inbox{Messages: s.InboxMessages, Bytes: s.InboxBytes, Overflow: reconnect.InboxOverflow(s.InboxOverflow)}
	}
	if !s.NoReceipts {
		o.Outbox.OnReceipt = w.onReceipt
		o.Outbox.Messages, o.Outbox.Bytes, o.Outbox.Age = s.OutboxMessages, s.OutboxBytes, s.OutboxAge
		o.Outbox.Overflow = reconnect.OutboxOverflow(s.OutboxOverflow)
	}
	if s.Keep {
		o.Outbox.Keep = w.keep
	}
	if s.ProbeByMessage {
		o.Liveness.Probe = func(_ context.Context, write func(conn.Message) error) error {
			w.badly(write)
			return write(conn.TextMessage("ping"))
		}
	}
	if s.KeepAlive > 0 {
		o.KeepAlive.Message = func() conn.Message { return conn.TextMessage("alive") }
	}
	if s.Pace > 0 {
		o.Pace = budget.Window{N: s.Pace, Per: time.Second}
	}
	w.wide(o)
	w.above.options(o)
	w.blocking(o)
	w.hearing(o)
	if w.set.Calls {
		o.Layers = append(o.Layers, &reconnect.Layer{Start: w.starts})
	}
	return o
}

// end ends the Conn in one of several ways.
func (w *world) end() {
	r := w.plan.stream(5)
	w.floodEnd()
	if w.set.Hears && !w.hasEnded() {
		w.prelude(w.plan.stream(19))
	}
	shutdown := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		at := w.now()
		w.mu.Lock()
		if w.shut == 0 {
			w.shut = at
		}
		w.mu.Unlock()
		err := w.conn.Shutdown(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.log("shutdown %v", kind(err))
		w.check(ShutdownInTime, w.now() <= at+limit, "Shutdown took %v of %v", w.now()-at, limit)
		if unsent, ok := errors.AsType[*reconnect.UnsentError](err); ok {
			w.unsent = unsent.Unsent
		}
		return err
	}
	w.mu.Lock()
	if w.closing == 0 { // else a callback has called Close
		w.closing = w.now()
	}
	w.log("ending %d", w.set.Ending)
	w.mu.Unlock()
	ending := w.set.Ending
	if w.set.Hears {
		ending = endHears
	}
	parted := false // in order
	switch ending {
	case endHears:
		s, all := w.due()
		err := shutdown(time.Hour)
		parted = err == nil
		w.heard(s, all, err)
	case endShutdown:
		shutdown(time.Hour)
	case endShutdownSoon:
		shutdown(upTo(r, 10*time.Second))
	case endBoth:
		w.users.Go(func() { shutdown(time.Hour) })
		time.Sleep(upTo(r, 3*time.Second))
	}
	at := w.now()
	w.closes()
	w.claim(CloseAtOnce, w.now() == at, "Close took %v", w.now()-at)
	select {
	case <-w.conn.Done():
	case <-time.After(2 * time.Minute):
		w.claim(EndsSoon, false, "Done is open 2 minutes after Close")
		<-w.conn.Done()
	}
	w.claim(EndsSoon, true, "")
	w.claim(NothingLeft, w.network.Count("").Open == 0, "open: %v", w.network.Conns(""))
	w.claim(StateIsNewest, w.conn.State() == reconnect.StateClosed, "after Done: %v", w.conn.State())
	time.Sleep(2*w.set.Lag + time.Millisecond) // the last close frame may be on its way
	w.mu.Lock()
	if parted {
		w.goodbyes()
	}
	w.log("done %v", kind(w.conn.Err()))
	w.mu.Unlock()
}

// The endings.
const (
	endClose = iota
	endShutdown
	endShutdownSoon
	endBoth
	endings
	endHears = endings // not drawn: Settings.Hears replaces what was
)

// kind is an error in the trace: its reason.
func kind(err error) string {
	if err == nil {
		return "nil"
	}
	return coarse(backoff.ReasonOf(err))
}

// coarse is a reason in the trace. Of the errors of a lost connection, such as that of a read and that of a write, any may come first.
func coarse(r backoff.Reason) string {
	switch r {
	case backoff.ReasonHangup, backoff.ReasonNetwork, backoff.ReasonRefused, backoff.ReasonOther:
		return "lost"
	}
	return r.String()
}
