package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// tcpWorld is one run of a plan.
type tcpWorld struct {
	plan     *Plan
	set      Settings
	start    time.Time
	listener *net.TCPListener
	path     string // of the URL, which no other program dials
	conn     *reconnect.Conn
	over     chan struct{}  // closed when the users are to end
	users    sync.WaitGroup // the reader, the writer, floods, and a Shutdown
	feeder   sync.WaitGroup
	serving  sync.WaitGroup // connections of the server
	readAll  chan struct{}  // closed when the reader has ended
	freezes  bool           // the dialer makes connections whose reads wait for frozen
	frozen   sync.RWMutex   // held while the client reads nothing
	step     atomic.Pointer[string]

	feeding sync.Mutex // guards events, and is held while one is sent to all peers
	events  int

	mu        sync.Mutex // guards what follows
	result    Result
	sessions  map[uint64]*tcpSession
	peers     map[uint64]*tcpPeer
	messages  map[string]*tcpMessage
	order     int
	calls     map[string][]time.Duration // times of Rotate, Shutdown and Close
	closing   bool
	notBefore time.Duration // a close frame allows no dial before
	seams     uint64        // the last session that had its seam
	lastRead  uint64        // session of the last message
}

// tcpSession is what is known of a session.
type tcpSession struct {
	number    uint64
	peer      *tcpPeer
	due       int       // last event before its login
	sent      []int     // events
	read      int       // how many of them the reader got
	words     *tcpWords // or nil if the peer has not ended it
	rotates   bool      // Rotate was called
	seam      bool
	lastOrder int
	goodbye   bool // the client's close frame came
	parted    bool // Shutdown has ended it without an error
}

// tcpWords is what a session is to deliver that its peer has ended.
type tcpWords struct {
	all     int         // messages
	reason  string      // of the close frame behind them, or empty
	arrived atomic.Bool // the kernel of the client had all before the end
}

// tcpMessage is a message of the client.
type tcpMessage struct {
	order, size int
	accepted    bool
	fates       []reconnect.Fate
	session     uint64 // that wrote it
	arrivals    int
}

// frozenConn is a connection whose reads wait while the client is frozen.
type frozenConn struct {
	*net.TCPConn
	frozen *sync.RWMutex
}

func (c frozenConn) Read(b []byte) (int, error) {
	c.await()
	defer c.await()
	return c.TCPConn.Read(b)
}

func (c frozenConn) await() {
	c.frozen.RLock()
	defer c.frozen.RUnlock()
}

func (w *tcpWorld) now() time.Duration { return time.Since(w.start) }

// log adds a line to the trace. The caller holds w.mu.
func (w *tcpWorld) log(format string, args ...any) {
	at := w.now().Round(time.Microsecond)
	w.result.Trace = append(w.result.Trace, fmt.Sprintf("%11v ", at)+fmt.Sprintf(format, args...))
}

// check notes that an invariant was at stake, and that it was violated if ok is false. The caller holds w.mu.
func (w *tcpWorld) check(i Invariant, ok bool, format string, args ...any) {
	w.result.Stakes[i]++
	if !ok {
		detail := fmt.Sprintf("at %v: ", w.now()) + fmt.Sprintf(format, args...)
		w.log("violated: %s: %s", i, detail)
		w.result.Violations = append(w.result.Violations, Violation{i, detail})
	}
}

// claim is check for a caller that does not hold w.mu.
func (w *tcpWorld) claim(i Invariant, ok bool, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(i, ok, format, args...)
}

// begin notes what the history begins to do, for the report of a hang.
func (w *tcpWorld) begin(step string) { w.step.Store(&step) }

// called notes the time of a call.
func (w *tcpWorld) called(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log("%s", name)
	w.calls[name] = append(w.calls[name], w.now())
}

// runOverSockets runs a plan. A history that hangs is left as it is, after a report of all goroutines.
func runOverSockets(p *Plan) Result {
	w := &tcpWorld{
		plan: p, set: p.Settings, start: time.Now(),
		path:    fmt.Sprintf("/%d/%d", os.Getpid(), p.Seed),
		freezes: p.stream(1).IntN(2) == 0,
		over:    make(chan struct{}), readAll: make(chan struct{}),
		result:   Result{Stakes: make(map[Invariant]int), Events: make(map[string]int)},
		sessions: make(map[uint64]*tcpSession), peers: make(map[uint64]*tcpPeer),
		messages: make(map[string]*tcpMessage), calls: make(map[string][]time.Duration),
	}
	w.begin("New")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run()
	}()
	select {
	case <-ended:
	case <-time.After(tcpHang):
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		w.claim(EndsSoon, false, "after %v the history hangs: %s\n%s", tcpHang, *w.step.Load(), stacks)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.result
}

// run runs the plan from the first dial until nothing is left.
func (w *tcpWorld) run() {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err == nil {
		w.listener = l
		defer l.Close()
		d := &dialer.WebSocket{URL: "ws://" + l.Addr().String() + w.path}
		if w.freezes {
			d.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return frozenConn{nc.(*net.TCPConn), &w.frozen}, nil
			}
		}
		w.conn, err = reconnect.New(d, w.options())
	}
	if err != nil {
		w.claim(NothingLeft, false, "it does not begin: %v", err)
		return
	}
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		w.accept()
	}()
	w.feeder.Go(func() {
		for w.rest(w.set.Tick) {
			w.feed(1)
		}
	})
	w.users.Go(w.writes)
	if w.set.Reader == readPush {
		close(w.readAll)
	} else {
		w.users.Go(w.reads)
	}
	for _, e := range w.plan.Events {
		w.begin("waits for a session, before " + e.Kind)
		w.rest(e.At - w.now())
		p := w.ready()
		w.mu.Lock()
		w.log("event %d %s", e.Index, e.Kind)
		w.result.Events[e.Kind]++
		w.mu.Unlock()
		w.begin(e.Kind)
		tcpKinds[e.Kind](w, w.plan.stream(100+uint64(e.Index)), p)
	}
	w.end()
	w.begin("waits until the Conn has closed its sockets")
	_ = l.Close()
	<-accepting
	w.serving.Wait()
	close(w.over)
	w.begin("waits for the users")
	w.users.Wait()
	w.feeder.Wait()
	w.finish()
}

// rest waits for d, and reports false if the history is over.
func (w *tcpWorld) rest(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-w.over:
		return false
	}
}

// ready waits until the server serves one session, which is ready, and returns its peer.
func (w *tcpWorld) ready() *tcpPeer {
	for {
		now := w.conn.Status()
		w.mu.Lock()
		p := w.peers[now.Session]
		alone := p != nil && len(w.peers) == 1 && p.s.words == nil && !p.s.rotates
		w.mu.Unlock()
		if alone && now.State == reconnect.StateReady && !now.Rotating {
			return p
		}
		time.Sleep(time.Millisecond)
	}
}

// options returns the options of the Conn.
func (w *tcpWorld) options() *reconnect.Options {
	s := w.set
	o := &reconnect.Options{
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if err := o.Write(conn.TextMessage(fmt.Sprint("login ", o.Session))); err != nil {
				return err
			}
			m, err := o.Read()
			if err == nil {
				welcome := string(m.Data) == fmt.Sprint("welcome ", o.Session)
				w.claim(WholeMessages, welcome, "session %d: the answer to the login is %.30q", o.Session, m.Data)
			}
			return err
		},
		WhenDown:  reconnect.WhenDown(s.WhenDown),
		KeepAlive: reconnect.KeepAlive{Every: s.KeepAlive},
		Rotate:    reconnect.Rotation{Overlap: reconnect.Overlap(s.Overlap), Drain: s.Drain},
		Liveness:  reconnect.Liveness{ProbeEvery: s.ProbeEvery},
		Outbox:    reconnect.Outbox{OnReceipt: w.onReceipt},
	}
	if s.KeepAlive > 0 {
		o.KeepAlive.Message = func() conn.Message { return conn.TextMessage("alive") }
	}
	if s.Reader == readPush {
		r := w.plan.stream(3)
		o.OnMessage = func(_ context.Context, m reconnect.Message) { w.message(m, r) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { w.seam(s) }
	} else {
		o.Inbox.Messages = s.InboxMessages
	}
	o.Run.OneConnection = s.OneConnection
	o.Run.Policy = &backoff.Exponential{Base: 2 * time.Millisecond, Cap: 20 * time.Millisecond}
	return o
}

// feed sends n events to all peers.
func (w *tcpWorld) feed(n int) {
	for range n {
		w.feeding.Lock()
		w.events++
		w.mu.Lock()
		peers := slices.Collect(maps.Values(w.peers))
		w.mu.Unlock()
		for _, p := range peers {
			p.say(w.events)
		}
		w.feeding.Unlock()
	}
}

// writes sends messages, by Send and Write in turn.
func (w *tcpWorld) writes() {
	r := w.plan.stream(4)
	for i := 0; w.rest(upTo(r, 2*w.set.Tick) + 1); i++ {
		m := &tcpMessage{size: r.IntN(300)}
		w.mu.Lock()
		w.order++
		m.order = w.order
		id := fmt.Sprint("m", i)
		w.messages[id] = m
		w.mu.Unlock()
		data := conn.TextMessage(id + " " + strings.Repeat("z", m.size))
		if r.IntN(3) > 0 {
			err := w.conn.Send(reconnect.Outgoing{Message: data, Tag: m})
			w.mu.Lock()
			m.accepted = err == nil
			w.mu.Unlock()
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), upTo(r, 50*time.Millisecond)+1)
		err := w.conn.Write(ctx, data)
		cancel()
		fate := reconnect.FateWritten
		failed, ok := errors.AsType[*reconnect.WriteError](err)
		if ok {
			fate = failed.Fate
		}
		w.mu.Lock()
		w.check(OneFate, err == nil || ok, "Write: %v", err)
		m.accepted, m.fates = true, append(m.fates, fate)
		w.mu.Unlock()
	}
}

// end ends the Conn in one of several ways, at any moment of a flood or of a rotation.
func (w *tcpWorld) end() {
	r := w.plan.stream(2)
	var last *tcpPeer // the peer that gets a close frame, unless a rotation begins
	if !w.set.Early {
		w.begin("waits for a session, before the end")
		last = w.ready()
		if w.set.Floods {
			w.beginFlood(r, last)
		}
		if r.IntN(3) == 0 {
			w.rotate(last)
			last = nil
			time.Sleep(upTo(r, 10*time.Millisecond))
		}
	}
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	shutdown := func(limit time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		w.called("Shutdown")
		w.begin("Shutdown")
		err := w.conn.Shutdown(ctx)
		if err == nil {
			<-w.readAll
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.log("Shutdown: %v", err)
		_, unsent := errors.AsType[*reconnect.UnsentError](err)
		closed := w.calls["Close"] != nil
		if !w.set.Early && limit == tcpLong { // else a fault may be the cause
			w.check(ShutdownInTime, err == nil || unsent || closed, "Shutdown: %v", err)
		}
		if err == nil && last != nil && !closed {
			last.s.parted = w.set.Ending != endBoth // else Close may come before the reader has all
		}
	}
	switch w.set.Ending {
	case endShutdown:
		shutdown(tcpLong)
	case endShutdownSoon:
		shutdown(upTo(r, 30*time.Millisecond) + 1)
	case endBoth:
		w.users.Go(func() { shutdown(tcpLong) })
		time.Sleep(upTo(r, 30*time.Millisecond))
	}
	w.called("Close")
	w.begin("Close")
	_ = w.conn.Close()
	w.begin("waits for Done")
	<-w.conn.Done()
	state, err := w.conn.State(), w.conn.Err()
	w.claim(StateIsNewest, state == reconnect.StateClosed && errors.Is(err, net.ErrClosed), "%v, %v", state, err)
}
