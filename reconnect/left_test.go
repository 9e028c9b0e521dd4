package reconnect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// elsewhere is a connection whose local address this machine does not have. The address is
// one for documentation (RFC 5737).
type elsewhere struct {
	conn.Conn
	conn.Pinger
	conn.Transport
}

// moved returns a connection of a machine that has moved. c must be one of alive.
func moved(c conn.Conn) elsewhere { return elsewhere{c, c.(conn.Pinger), c.(conn.Transport)} }

// quiet returns e without a way to probe it.
func (e elsewhere) quiet() conn.Conn {
	return struct {
		conn.Conn
		conn.Transport
	}{e.Conn, e}
}

func (elsewhere) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// A machine that was suspended may be elsewhere now, and a probe would wait for an answer.
func TestAConnectionWhoseAddressIsGoneAfterASuspensionIsCut(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		var slept atomic.Int64
		o := withPolicy(every(time.Hour))
		reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
		c, d := s.down(&o)
		s.wrap = func(peer *conntest.Fake) conn.Conn { return moved(peer.Conn()) }
		d.accept()
		slept.Store(int64(8 * time.Hour))
		time.Sleep(10 * time.Second) // the next look
		synctest.Wait()
		require.Equal(t, reconnect.StateWaiting, c.State())
		require.Equal(t, backoff.ReasonLocal, wantSeam(t, c).Reason)
	})
}

// readInbox opens a Conn with this inbox and returns its first connection.
func readInbox(t *testing.T, s *scene, in reconnect.Inbox) (*reconnect.Conn, *conntest.Fake) {
	o := withPolicy(every(time.Second))
	o.Inbox = in
	c := s.open(&o)
	return c, s.wantDial().accept()
}

// blob returns a binary message of so many bytes.
func blob(size int) conn.Message { return conn.Message{Type: conn.Binary, Data: make([]byte, size)} }

// led is a connection that counts the messages which the reader of the Conn has read itself.
type led struct {
	*conn.WebSocket
	whole *atomic.Int32
}

func (l led) ReadWhole(buf []byte) (conn.Message, bool, bool) {
	m, more, whole := l.WebSocket.ReadWhole(buf)
	if whole {
		l.whole.Add(1)
	}
	return m, more, whole
}

// echo is a server that sends each message back.
func echo(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	for {
		kind, p, err := c.Read(ctx)
		if err != nil || c.Write(ctx, kind, p) != nil {
			return
		}
	}
}

// withReader runs a test with a Conn whose reader reads the connection itself, because some messages have come one by
// one. ask sends a message and reads its echo.
func withReader(t *testing.T, o *reconnect.Options, test func(t *testing.T, c *reconnect.Conn, s *wsServer, whole *atomic.Int32, ask func(data string))) {
	withWSServer(t, echo, func(t *testing.T, s *wsServer) {
		whole := new(atomic.Int32)
		c, err := reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
			ws, err := s.dialer.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return led{ws.(*conn.WebSocket), whole}, nil
		}), o)
		require.NoError(t, err)
		t.Cleanup(func() { closeAndWait(c) })
		require.NoError(t, c.AwaitReady(t.Context()))
		buf := make([]byte, 100)
		ask := func(data string) {
			t.Helper()
			read := make(chan error, 1)
			go func() {
				m, err := c.Read(t.Context(), buf)
				if err == nil && string(m.Data) != data {
					err = fmt.Errorf("got %q", m.Data)
				}
				read <- err
			}()
			synctest.Wait() // the reader waits
			require.NoError(t, c.Write(t.Context(), text(data)))
			require.NoError(t, <-read)
		}
		for i := 0; whole.Load() < 2; i++ { // mostly 6 times; a Wake of the reader that returns late ends its first read
			require.Less(t, i, 30, "the reader does not get the turn")
			ask(fmt.Sprint(i))
		}
		test(t, c, s, whole, ask)
	})
}

// suspended returns a Conn whose machine was suspended when a message came after 5 s: the wall
// clock goes on, and the timers do not.
func suspended(s *scene) (*reconnect.Conn, *conntest.Fake) {
	s.fake = alive
	var slept atomic.Int64
	o := withPolicy(every(time.Hour))
	reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
	c, peer := s.ready(&o)
	time.Sleep(5 * time.Second)
	peer.Hear()
	slept.Store(int64(8 * time.Hour))
	return c, peer
}

// Promise 8: the first look after the machine wakes up probes the peer.
func TestASuspendedMachineProbesAtOnce(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := suspended(s)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, peer.Pings(), "though it was heard of 5 s ago by the clock that stood still")
		time.Sleep(time.Hour)
		require.Equal(t, reconnect.StateReady, c.State(), "it has answered")
	})
}

// Promise 8: after the machine wakes up, the peer has another third of the limit to answer.
func TestASuspendedMachineFindsOutThatItsPeerIsDead(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		c, peer := suspended(s)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.ErrorIs(t, c.Status().Err, reconnect.ErrSilent)
		require.Equal(t, 20*time.Second, s.now())
	})
}

// Promise 8: a suspension never makes the verdict later than it would be without one.
func TestASuspendedMachineJudgesNoLaterThanOneThatWasNot(t *testing.T) {
	for _, awake := range []time.Duration{1, 9, 11, 19, 21, 29} {
		inEachForm(t, func(t *testing.T, s *scene) {
			s.fake = alive
			var slept atomic.Int64
			o := withPolicy(every(time.Hour))
			reconnect.SetWallClock(&o, func() time.Time { return time.Now().Add(time.Duration(slept.Load())) })
			c, peer := s.ready(&o)
			peer.Mute()
			time.AfterFunc(awake*time.Second, func() { slept.Store(int64(time.Hour)) })
			require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
			require.LessOrEqual(t, s.now(), 30*time.Second)
		})
	}
}

// A wall clock that is set back does not look like a suspension.
func TestAClockThatIsSetBackChangesNothing(t *testing.T) {
	inEachForm(t, func(t *testing.T, s *scene) {
		s.fake = alive
		back := time.Duration(0)
		o := withPolicy(every(time.Hour))
		reconnect.SetWallClock(&o, func() time.Time { back -= time.Hour; return time.Now().Add(back) })
		c, peer := s.ready(&o)
		peer.Mute()
		require.NoError(t, c.Await(t.Context(), reconnect.StateWaiting))
		require.Equal(t, 30*time.Second, s.now())
	})
}

// lines returns the lines that a logger wrote.
func lines(b *bytes.Buffer) []string {
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// logger writes to b, whatever the level is, and without the times.
func logger(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// openLogged opens a Conn whose log goes to b.
func (s *scene) openLogged(o reconnect.Options) (c *reconnect.Conn, b *bytes.Buffer) {
	b = new(bytes.Buffer)
	o.Run.Trace = reconnect.Log(logger(b))
	return s.open(&o), b
}

// The tests of RunOptions.Logins: Conns, and Runs, that are given one budget.

func newLogins(t testing.TB, o budget.LoginsOptions) *budget.Logins {
	t.Helper()
	l, err := budget.NewLogins(&o)
	require.NoError(t, err)
	return l
}

// hourly is a budget of so many logins in an hour.
func hourly(t testing.TB, n int) *budget.Logins {
	return newLogins(t, budget.LoginsOptions{Windows: []budget.Window{{N: n, Per: time.Hour}}})
}

// hourly is a budget of n logins in an hour, and those that s takes until its test begins.
func (s *scene) hourly(n int) *budget.Logins { return hourly(s.t, n+s.form.readyLogins()) }

// loggingIn are options that log in by a message, and take the logins from l.
func loggingIn(l *budget.Logins) reconnect.Options {
	o := withPolicy(every(time.Second))
	o.Run.Logins = l
	o.OnSession = func(_ context.Context, op *reconnect.Opening) error { return op.Write(text("login")) }
	return o
}

// acceptLate is accept with a peer that answers each ping after a while, or never if that is
// negative.
func acceptLate(d *pendingDial, answers time.Duration) *conntest.Fake {
	peer := conntest.NewFake(&d.s.fake)
	if peer.PongAfter(answers); answers < 0 {
		peer.Mute()
	}
	d.bring(peer)
	return peer
}

// receiptLog is an Outbox.OnReceipt that keeps each receipt.
type receiptLog struct {
	mu       sync.Mutex // guards what follows
	receipts []reconnect.Receipt
}

func (l *receiptLog) add(_ context.Context, r reconnect.Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receipts = append(l.receipts, r)
}

// all returns the receipts until now, in order.
func (l *receiptLog) all() []reconnect.Receipt {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]reconnect.Receipt(nil), l.receipts...)
}

// want asserts the receipts until now. Each is a line like "order: written 1": the message, its
// fate and its session.
func (l *receiptLog) want(t *testing.T, lines ...string) {
	t.Helper()
	got := []string{}
	for _, r := range l.all() {
		got = append(got, fmt.Sprintf("%s: %v %d", r.Outgoing.Data, r.Fate, r.Session))
	}
	require.Equal(t, append([]string{}, lines...), got)
}

// last returns the newest receipt.
func (l *receiptLog) last(t *testing.T) reconnect.Receipt {
	t.Helper()
	all := l.all()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// sending returns options for Send that redial after a second, and the log of their receipts.
func sending(down reconnect.WhenDown) (*reconnect.Options, *receiptLog) {
	l, o := new(receiptLog), withPolicy(every(time.Second))
	o.WhenDown, o.Outbox.OnReceipt = down, l.add
	return &o, l
}

// receipts returns the lines of receipts of s.session.
func (s *scene) receipts(lines ...string) []string {
	for i, line := range lines {
		lines[i] = fmt.Sprint(line, " ", s.session)
	}
	return lines
}

// queue sends each of the messages, which must be accepted.
func queue(t *testing.T, c *reconnect.Conn, messages ...string) {
	t.Helper()
	for _, m := range messages {
		require.NoError(t, c.Send(reconnect.Outgoing{Message: text(m)}))
	}
}

// out returns a message for Send.
func out(data string) reconnect.Outgoing { return reconnect.Outgoing{Message: text(data)} }

// repeatable returns a message that may be sent twice.
func repeatable(data string) reconnect.Outgoing {
	return reconnect.Outgoing{Message: text(data), Repeatable: true}
}

// startWrite begins a Write. The channel gets its error.
func startWrite(ctx context.Context, c *reconnect.Conn, data string) <-chan error {
	wrote := make(chan error, 1)
	go func() { wrote <- c.Write(ctx, text(data)) }()
	synctest.Wait()
	return wrote
}

// startShutdown begins a Shutdown. The channel gets its error.
func startShutdown(ctx context.Context, c *reconnect.Conn) <-chan error {
	shut := make(chan error, 1)
	go func() { shut <- c.Shutdown(ctx) }()
	synctest.Wait()
	return shut
}

// sendAndLose sends messages, and loses the session while the first is being written.
func sendAndLose(t *testing.T, c *reconnect.Conn, peer *conntest.Fake, messages ...reconnect.Outgoing) {
	t.Helper()
	peer.Hold()
	for _, m := range messages {
		require.NoError(t, c.Send(m))
		synctest.Wait()
	}
	peer.Fail(errLost)
	synctest.Wait()
}

// errNotBegun is the error of a write of which not a byte has left.
var errNotBegun = fmt.Errorf("%w: %w", conn.ErrNotWritten, errLost)

// wantFate asserts the fate and the session in the error of a write.
func wantFate(t *testing.T, err error, fate reconnect.Fate, session uint64) {
	t.Helper()
	var w *reconnect.WriteError
	require.ErrorAs(t, err, &w)
	require.Equal(t, fate, w.Fate, err)
	require.Equal(t, session, w.Session, err)
}

// wantUnsent asserts which messages a Shutdown has left, and why.
func wantUnsent(t *testing.T, err error, cause error, messages ...string) {
	t.Helper()
	var unsent *reconnect.UnsentError
	require.ErrorAs(t, err, &unsent)
	got := []string{}
	for _, r := range unsent.Unsent {
		got = append(got, string(r.Outgoing.Data))
		require.NotEqual(t, reconnect.FateWritten, r.Fate)
	}
	require.Equal(t, messages, got)
	require.Equal(t, cause, unsent.Err)
}

// written returns what was written to a fake, in one line.
func written(peer *conntest.Fake) string {
	synctest.Wait()
	data := []string{}
	for _, m := range peer.Written() {
		data = append(data, string(m.Data))
	}
	return strings.Join(data, " ")
}

// slowConn is a connection whose writes take a second each.
type slowConn struct{ conn.Conn }

func (s slowConn) Write(m conn.Message) error {
	time.Sleep(time.Second)
	return s.Conn.Write(m)
}

// overlapping opens a Conn whose first session is being replaced by the second.
func overlapping(s *scene, o *reconnect.Options) (c *reconnect.Conn, old, next *conntest.Fake) {
	c = s.open(o)
	old = s.wantDial().accept()
	c.Rotate(1, reconnect.Advice{})
	next = s.wantDial().accept()
	return c, old, next
}

// texts returns what a peer got.
func texts(peer *conntest.Fake) (list []string) {
	for _, m := range peer.Written() {
		list = append(list, string(m.Data))
	}
	return list
}

// rotating returns options without waits, with this way to rotate.
func rotating(way reconnect.Overlap) reconnect.Options {
	o := withPolicy(every(time.Second))
	o.Rotate.Overlap = way
	return o
}

// refusedRotation returns a Conn whose session was to be replaced, which the server has refused
// because of why, and that session. done gets the errors of Trace.RotateDone.
func (s *scene) refusedRotation(why error) (c *reconnect.Conn, old *conntest.Fake, done *[]error) {
	done = new([]error)
	o := rotating(reconnect.OverlapHold)
	o.Run.Trace = &reconnect.Trace{RotateDone: func(r reconnect.RotateDone) { *done = append(*done, r.Err) }}
	c = s.open(&o)
	old = s.wantDial().accept()
	c.Rotate(1, reconnect.Advice{})
	s.wantDial().refuse(why)
	return c, old, done
}

// runConn is the connection of a bare Run: a Closer that notes its closes, each of which takes
// some time.
type runConn struct {
	takes   time.Duration
	closing int // closes under way
	closed  bool
}

func (p *runConn) Close() error {
	p.closing++
	time.Sleep(p.takes)
	p.closing--
	p.closed = true
	return nil
}

// The tests of run.go that are about verdicts: what it makes of each error, and of each way in which a server behaves badly.

// answered is an error with the status code of an answer, as those of a dialer are.
type answered int

func (a answered) Error() string { return "answered" }

func (a answered) StatusCode() int { return int(a) }

func hasStatus(code int) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*dialer.Error](err)
		return ok && e.StatusCode == code
	}
}

const (
	retry, overload, slow = backoff.ClassRetry, backoff.ClassOverload, backoff.ClassSlow
	whole                 = conntest.Fin | conntest.TextFrame
)

// stallOptions returns options with a limit on the time without data, and without a wait before
// a redial.
func stallOptions(limit time.Duration) reconnect.Options {
	o := withPolicy(every(0))
	o.Stall.Limit = limit
	return o
}

// Expected gets the time of the wall clock.
func TestExpectedGetsTheWallClock(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		wall := time.Date(2027, 1, 4, 9, 30, 0, 0, time.UTC)
		o := stallOptions(time.Second)
		reconnect.SetWallClock(&o, func() time.Time { return wall })
		o.Stall.Expected = func(at time.Time) bool {
			require.Equal(t, wall, at)
			return false
		}
		c := s.open(&o)
		s.wantDial().accept()
		time.Sleep(time.Minute)
		require.Equal(t, reconnect.StateReady, c.State())
	})
}

// eachSeed runs f for so many seeds, or for as many as REDIAL_SEEDS says.
func eachSeed(t *testing.T, seeds int, f func(t *testing.T, seed uint64)) {
	if testing.Short() || raceEnabled() {
		seeds /= 5
	}
	if n, err := strconv.Atoi(os.Getenv("REDIAL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { f(t, seed) })
	}
}

// upTo draws from [0, d).
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

func (s *framedServer) stop() { s.network.Fault(framedAddr) }

func (s *framedServer) inject(r *rand.Rand) {
	if r.IntN(4) == 0 {
		s.network.Fault(framedAddr, dialFault(r), conntest.Fault{})
		return
	}
	for _, p := range s.network.Conns(framedAddr) {
		breakConn(r, p)
	}
}

// dialFault returns a random fault of a dial.
func dialFault(r *rand.Rand) conntest.Fault {
	late, way, size := upTo(r, 20*time.Second), conntest.Direction(1+r.IntN(2)), r.Int64N(2000)
	return []conntest.Fault{
		{Refuse: true}, {Hang: true}, {Drop: true}, {Delay: late}, {Delay: late, IgnoresContext: true}, {Delay: late, CompletesAnyway: true},
		{Err: &net.DNSError{Err: "no such host", Name: "feed.test"}}, {AcceptDelay: late},
		{OnConn: func(p *conntest.Pipe) { p.Cut(way, size) }},
	}[r.IntN(9)]
}

// breakConn breaks a connection in a random way.
func breakConn(r *rand.Rand, p *conntest.Pipe) {
	d := conntest.Direction(1 + r.IntN(2))
	switch r.IntN(9) {
	case 0:
		p.Reset()
	case 1:
		p.FIN(d)
	case 2:
		p.Cut(d, r.Int64N(3000))
	case 3:
		p.CutReset(d, r.Int64N(3000))
	case 4:
		p.Stall(conntest.Direction(1 + r.IntN(3)))
	case 5:
		p.Thaw(conntest.Both)
	case 6:
		p.Latency(d, upTo(r, 3*time.Second))
	case 7:
		p.Trickle(d, 1+r.IntN(2000), 10*time.Millisecond)
	case 8:
		p.Window(d, r.IntN(5000))
	}
}

// recorder returns a Trace that notes each event.
func recorder(n *notes) *reconnect.Trace {
	number := func(s uint64) string { return string('0' + rune(s)) }
	return &reconnect.Trace{
		DialStart: func(reconnect.DialStart) { n.add("dial") },
		DialDone: func(d reconnect.DialDone) {
			if d.Err == nil {
				n.add("dialed ok")
			} else {
				n.add("dialed " + d.Err.Error())
			}
		},
		SessionStart: func(s *reconnect.Session) { n.add("session " + number(s.Number)) },
		SessionReady: func(s *reconnect.Session) { n.add("ready " + number(s.Number)) },
		SessionDone:  func(e reconnect.SessionDone) { n.add("session " + number(e.Session) + " ended") },
		WaitStart:    func(reconnect.WaitStart) { n.add("wait") },
		WaitDone:     func(reconnect.WaitDone) { n.add("waited") },
		ConnDone:     func(reconnect.ConnDone) { n.add("end") },
	}
}
