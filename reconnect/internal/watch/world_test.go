package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// scene is a session: how it is watched, what happens, and what the watchers do.
type scene struct {
	name      string
	liveness  LivenessOptions
	stall     *StallOptions
	keepAlive *KeepAliveOptions
	window    budget.Window
	conn      *conntest.FakeOptions // nil: pings, and a Transport
	special   *special
	pong      time.Duration // how long the answer to a ping takes; 0: there is none
	hook      time.Duration // how long the hooks of the trace take
	exits     string        // the hook that ends its goroutine

	patience, stalls           int // of the Conn before the session
	patienceAfter, stallsAfter int

	script []step
	until  string // when the session is closed
	want   string // the trace: the time since Start, and what happened
}

// step is what happens at a time after Start. Steps at the same time happen one after the other, those at "" before Start.
type step struct {
	at string
	do func(*world)
}

// world is the session of a scene. It is the Report, the observer of the link, and the reader.
type world struct {
	shared    Shared
	fake      *conntest.Fake
	life      link.Life
	link      link.Link
	calls     Calls // of the reader
	liveness  Liveness
	keepAlive *KeepAlive
	stall     *Stall
	hook      time.Duration
	exits     string
	ahead     atomic.Int64 // of the wall clock, in ns
	late      atomic.Int64 // how long the next look at the clock takes, in ns: the process is stopped
	ticks     atomic.Int32 // of Liveness
	begin     time.Time

	mu    sync.Mutex // guards trace
	trace []string
	over  bool // the trace is complete
}

// special is a connection with some methods of the test's. It embeds a Fake, or a part of one.
type special struct {
	conn.Conn
	conn.Transport
	ping  func(context.Context) error
	write func(conn.Message) error // nil: that of Conn
	local net.Addr
}

func (s *special) Ping(ctx context.Context) error { return s.ping(ctx) }
func (s *special) LocalAddr() net.Addr            { return s.local }
func (s *special) Write(m conn.Message) error {
	if s.write == nil {
		return s.Conn.Write(m)
	}
	return s.write(m)
}

// play plays each scene in the first year of a bubble, when each link.Instant is negative, and in 2100.
func play(t *testing.T, scenes []scene) {
	for _, s := range scenes {
		for _, year := range []int{2000, 2100} {
			t.Run(fmt.Sprintf("%s, in %d", s.name, year), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)))
					s.play(t)
				})
			})
		}
	}
}

// play plays the scene now.
func (s *scene) play(t *testing.T) {
	w := newWorld(s)
	cause := w.run(s)
	require.Equal(t, s.want, strings.Join(w.trace, ", "))
	w.liveness.Ended(cause)
	require.EqualValues(t, s.patienceAfter, w.shared.patience.Load(), "patience")
	require.EqualValues(t, s.stallsAfter, w.shared.stalls.Load(), "stalls")
	require.EqualValues(t, strings.Count(s.want, "probe"), w.life.Counts.Probes.Load(), "probes")
	kept := slices.DeleteFunc(w.fake.Written(), func(m conn.Message) bool { return string(m.Data) != alive })
	require.EqualValues(t, len(kept), w.life.Counts.KeepAliveMessages.Load(), "KeepAlive messages")
}

func newWorld(s *scene) *world {
	options := s.conn
	if options == nil {
		options = &conntest.FakeOptions{Pings: true, Transport: true}
	}
	w := &world{fake: conntest.NewFake(options), hook: s.hook, exits: s.exits, begin: time.Now()}
	if w.fake.PongAfter(s.pong); s.pong == 0 {
		w.fake.PongAfter(1000 * time.Hour)
	}
	w.shared.Liveness, w.shared.Stall, w.shared.KeepAlive, w.shared.Report = &s.liveness, s.stall, s.keepAlive, w
	w.shared.Liveness.Now = func() time.Time {
		if w.ticks.Add(1) > 100_000 {
			panic("a watcher looks all the time")
		}
		time.Sleep(time.Duration(w.late.Swap(0)))
		return time.Now().Add(time.Duration(w.ahead.Load()))
	}
	w.shared.patience.Store(uint32(s.patience))
	w.shared.stalls.Store(int32(s.stalls))
	c := w.fake.Conn()
	if s.special != nil {
		special := *s.special
		special.Conn, special.Transport = c, c.(conn.Transport)
		if special.ping == nil {
			special.ping = c.(conn.Pinger).Ping
		}
		c = &special
	}
	w.link.Begin(c, &w.life, s.window)
	w.link.Observe(w)
	w.calls.Init(w, w.shared.SlowAfter())
	w.calls.Follow(&w.link)
	w.liveness.Prepare(&w.shared, c)
	w.keepAlive, w.stall = NewKeepAlive(&w.shared, &w.link), NewStall(&w.shared, &w.link)
	return w
}

// run plays the scene, and returns why the session has ended.
func (w *world) run(s *scene) error {
	go w.read()
	ended := make(chan string, 1)
	go func() {
		<-w.link.Done()
		ended <- fmt.Sprintf("%v cut: %v", w.now(), w.link.Cause(nil))
	}()
	script := s.script
	for ; len(script) > 0 && script[0].at == ""; script = script[1:] {
		script[0].do(w)
		synctest.Wait()
	}
	w.begin = time.Now()
	w.liveness.Start(&w.link)
	w.keepAlive.Start()
	w.stall.Start()
	for _, x := range append(script, step{s.until, func(*world) {}}) {
		at, err := time.ParseDuration(x.at)
		if err != nil {
			panic(err)
		}
		time.Sleep(time.Until(w.begin.Add(at)))
		synctest.Wait()
		x.do(w)
	}
	synctest.Wait()
	if w.link.Ended() {
		w.note("%s", <-ended)
	}
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.link.Cut(net.ErrClosed)
	w.liveness.Stop()
	w.keepAlive.Stop()
	w.stall.Stop(w.link.Cause(nil))
	w.calls.Stop()
	return w.link.Cause(nil)
}

// read plays the supervisor: it reads until the link ends. A binary message fills the inbox, and a text is handled, for as long as its data says.
func (w *world) read() {
	for {
		m, err := w.link.Read(func(int) []byte { return nil })
		if err != nil {
			w.link.EndedBy(err)
			w.link.Close()
			return
		}
		w.link.Heard()
		pause, err := time.ParseDuration(string(m.Data))
		if err != nil {
			continue
		}
		if m.Type == conn.Binary {
			w.link.Pause(link.Blocked)
			w.liveness.Blocked()
		} else {
			w.link.Pause(link.Handling)
			w.calls.Arm()
		}
		select {
		case <-time.After(pause):
		case <-w.link.Done():
		}
		w.link.Resume()
	}
}

// note adds an event to the trace.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.trace = append(w.trace, fmt.Sprintf(format, args...))
	}
}

// now returns the time since Start.
func (w *world) now() time.Duration { return time.Since(w.begin) }

// exitIf ends the goroutine of a hook, if the scene wants that.
func (w *world) exitIf(hook string) {
	if w.exits == hook {
		runtime.Goexit()
	}
}

func (w *world) ProbeStart(_ uint64, silence time.Duration) {
	w.note("%v probe %v", w.now(), silence)
	w.exitIf("ProbeStart")
	time.Sleep(w.hook)
}

func (w *world) ProbeDone(_ uint64, took time.Duration, err error) {
	switch {
	case err == nil:
		w.note("%v done %v", w.now(), took)
	case errors.Is(err, context.Canceled):
		w.note("%v canceled %v", w.now(), took)
	case errors.Is(err, context.DeadlineExceeded):
		w.note("%v late %v", w.now(), took)
	default:
		w.note("%v failed %v", w.now(), took)
	}
	w.exitIf("ProbeDone")
}

func (w *world) SlowHandler(_ uint64, function string, since time.Duration) {
	w.note("%v slow %s %v", w.now(), function, since)
	w.exitIf("SlowHandler")
	time.Sleep(w.hook)
}

func (w *world) Overdue(function string, since time.Duration) {
	w.note("%v overdue %s %v", w.now(), function, since)
	w.exitIf("Overdue")
	time.Sleep(w.hook)
}

func (w *world) Await(done <-chan struct{}, function string) {
	w.note("%v await %s", w.now(), function)
	<-done
}

func (w *world) NoteHeard()   { w.liveness.Heard(); w.stall.Heard() }
func (w *world) NoteResumed() { w.stall.Resumed() }

func (w *world) NoteWrote() {
	if w.keepAlive.Wrote(); w.keepAlive != nil {
		w.note("%v wrote", w.now())
	}
}

// Steps.

func check(w *world)   { w.liveness.Check() }
func bytes(w *world)   { w.fake.Hear() }
func message(w *world) { w.fake.Deliver(conn.Message{}) }
func hangUp(w *world)  { w.fake.HangUp() }
func suspend(w *world) { w.ahead.Add(int64(time.Hour)) }
func leave(w *world)   { w.life.Leaving.Store(true) }

// handle delivers a message whose handler takes d.
func handle(d string) func(*world) {
	return func(w *world) { w.fake.Deliver(conn.Message{Type: conn.Text, Data: []byte(d)}) }
}

// block delivers a message for which there is no room until d is over.
func block(d string) func(*world) {
	return func(w *world) { w.fake.Deliver(conn.Message{Type: conn.Binary, Data: []byte(d)}) }
}

// ahead moves the wall clock by d.
func ahead(d time.Duration) func(*world) { return func(w *world) { w.ahead.Add(int64(d)) } }

// pong changes how long an answer takes.
func pong(d time.Duration) func(*world) { return func(w *world) { w.fake.PongAfter(d) } }

// stop makes the next look of Liveness late, as if the process was stopped.
func stop(d time.Duration) func(*world) { return func(w *world) { w.late.Store(int64(d)) } }

// stopProbe stops the process during a probe, as if the timer of its limit had been set d earlier: it rings now.
func stopProbe(d time.Duration) func(*world) {
	return func(w *world) {
		p := w.liveness.probing.Load()
		p.midWait -= d
		p.timer.Set(0, p.beat)
	}
}

func cut(w *world) { w.link.Cut(net.ErrClosed) }

// end cuts the link and stops the watchers, as the supervisor does when the session ends.
func end(w *world) {
	w.link.Cut(net.ErrClosed)
	w.liveness.Stop()
	w.keepAlive.Stop()
	w.stall.Stop(net.ErrClosed)
	w.note("%v stopped", w.now())
}
