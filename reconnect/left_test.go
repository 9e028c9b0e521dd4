package reconnect_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

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

// levels returns the first letter of the level of each line about a wait.
func levels(b *bytes.Buffer) (all string) {
	for _, line := range lines(b) {
		if strings.Contains(line, `msg="waiting to redial"`) {
			all += line[len("level="):][:1]
		}
	}
	return all
}

// secrets must appear nowhere (promise 13). They are in the URL, the header, the credentials of
// Prepare, and in what the server sends back.
var secrets = []string{"usersecret", "passsecret", "querysecret", "headsecret", "keysecret", "bodysecret", "hintsecret"}

const controls = "\x1b[31mred\r\nlevel=ERROR msg=\"all is lost\"\u202e"

// everyFault prepares every kind of fault: first of the dials, then of the handshakes, then of
// the sessions. It returns how many they are.
func everyFault(server *wsServer) (faults int) {
	dials := []conntest.Fault{
		{Refuse: true}, {Hang: true}, {Drop: true}, {Delay: time.Second, Refuse: true},
		{Err: &net.DNSError{Err: "no such host", Name: "feed.test", IsNotFound: true}},
	}
	server.network.Fault(wsAddr, append(dials, conntest.Fault{})...)
	leak := http.Header{"Location": {"http://other.test/?token=bodysecret"}, "X-Token": {"bodysecret"}}
	page := func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "bodysecret "+r.URL.String()+controls, 400)
	}
	answers := []conntest.Answer{
		page, conntest.Status(401, leak), conntest.Status(503, leak), conntest.Status(302, leak), conntest.Status(200, leak),
		http.RedirectHandler("", http.StatusFound).ServeHTTP, conntest.Hang, conntest.HangUp, conntest.BadAccept, conntest.Garbage([]byte(controls + "\r\n\r\n")),
		conntest.Status(200, http.Header{"X": {strings.Repeat("bodysecret", 100_000)}}),
	}
	for _, h := range []conntest.Handler{
		conntest.CloseWith(1008, controls), conntest.CloseWith(4001, strings.Repeat("x", 123)),
		conntest.CloseWith(4002, "no keysecret, passsecret, querysecret, headsecret"),
		conntest.CloseWith(1012, "redial/1 wait=1s url=ws://feed.test/v1?resume=hintsecret hint=hintsecret"),
		conntest.Frames(conntest.Frame{Head: conntest.Fin | 0x3, Payload: []byte(controls)}),
		conntest.Frames(conntest.Frame{Head: conntest.Fin | conntest.TextFrame, Payload: make([]byte, 5000)}),
		conntest.Frames(conntest.Frame{Head: conntest.TextFrame}),
		on(func(p *conntest.Pipe) { p.Reset() }), on(func(p *conntest.Pipe) { p.FIN(conntest.ToClient) }),
		on(func(p *conntest.Pipe) { p.Stall(conntest.Both) }), on(func(p *conntest.Pipe) { p.Window(conntest.ToServer, 0) }),
		on(func(p *conntest.Pipe) {
			p.Inject(conntest.ToClient, []byte{0x81, 100, 'x'})
			p.Cut(conntest.ToClient, 1)
		}),
	} {
		answers = append(answers, server.AcceptWith(h))
	}
	server.Next(append(answers, server.Accept)...)
	return len(dials) + len(answers)
}

// on returns a handler that calls f with its connection.
func on(f func(*conntest.Pipe)) conntest.Handler {
	return func(ctx context.Context, _ *websocket.Conn, _ *http.Request) {
		f(conntest.PipeOf(ctx))
		<-ctx.Done()
	}
}

// watchStatus collects the errors of the status and of writes.
func watchStatus(c *reconnect.Conn, texts *notes) {
	for c.Await(context.Background(), reconnect.StateWaiting) == nil {
		texts.add(fmt.Sprintf("status: %v", c.Status().Err))
		if err := c.Write(context.Background(), text("x")); err != nil {
			texts.add(err.Error())
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// watchStream collects what the reader gets.
func watchStream(c *reconnect.Conn, texts *notes) {
	for m, err := range c.Messages(context.Background()) {
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			texts.add("seam: " + err.Error())
			texts.add(seam.Cause.Error())
		} else if err == nil {
			texts.add("read " + string(m.Data))
		}
	}
}

func requireHarmless(t *testing.T, s string) {
	t.Helper()
	for _, secret := range secrets {
		require.NotContains(t, s, secret)
	}
	require.Less(t, len(s), 1000)
	require.NotContains(t, s, "level=ERROR msg=\"all", "an injected line")
	for _, r := range s {
		require.True(t, unicode.IsPrint(r), "%q in %q", r, s)
	}
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

// invalidDialer is a dialer whose Validate fails.
type invalidDialer struct{ reconnect.DialFunc }

func (invalidDialer) Validate() error { return errors.New("dialer: URL: no host") }

// numbers returns the paths of all fields of a struct that are numbers.
func numbers(t reflect.Type, path string, index []int) map[string][]int {
	found := map[string][]int{}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		at := append(append([]int(nil), index...), i)
		switch f.Type.Kind() {
		case reflect.Int, reflect.Int64:
			found[path+f.Name] = at
		case reflect.Struct:
			for name, at := range numbers(f.Type, path+f.Name+".", at) {
				found[name] = at
			}
		}
	}
	return found
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

// stuckConn is a connection whose Close blocks until release is closed, as that of a client that
// waits for its peer may.
type stuckConn struct{ release chan struct{} }

func (c stuckConn) Close() error { <-c.release; return nil }

// closeReports returns a Trace that notes in reports what SlowHandler and Overdue report.
func closeReports(reports *notes) *reconnect.Trace {
	note := func(kind, what string, since time.Duration) { reports.add(fmt.Sprint(kind, " ", what, " ", since)) }
	return &reconnect.Trace{
		SlowHandler: func(e reconnect.SlowHandler) { note("slow", e.What, e.Since) },
		Overdue:     func(e reconnect.Overdue) { note("overdue", e.What, e.Since) },
	}
}

// dropping is a server that ends each session with cause when it was ready for so long. If that
// is negative, it refuses each dial with cause.
type dropping struct {
	ready time.Duration
	cause error
}

// supervisor keeps a connection to a server open by dial, until that returns an error that is
// permanent.
type supervisor func(s dropping, dial func() error, o reconnect.RunOptions) error

func run(s dropping, dial func() error, o reconnect.RunOptions) error {
	return reconnect.Run(context.Background(), func(context.Context) (io.Closer, error) {
		return io.NopCloser(nil), dial()
	}, func(_ context.Context, _ io.Closer, session *reconnect.Session) error {
		session.Ready()
		time.Sleep(s.ready)
		return s.cause
	}, &o)
}

func keep(s dropping, dial func() error, o reconnect.RunOptions) error {
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		fake := conntest.NewFake(nil)
		time.AfterFunc(s.ready, func() { fake.Fail(s.cause) })
		return fake, dial()
	}), &reconnect.Options{Run: o, Inbox: reconnect.Inbox{Overflow: reconnect.InboxDiscard}})
	if err == nil {
		<-c.Done()
		err = c.Err()
	}
	return err
}

// waits returns the first 40 waits before the server.
func (s dropping) waits(t *testing.T, policy backoff.Policy, by supervisor) (waits []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		lost := time.Now()
		err := by(s, func() error {
			if len(waits) == 40 {
				return backoff.Permanent(errLost)
			}
			waits = append(waits, time.Since(lost))
			lost = time.Now().Add(max(s.ready, 0))
			if s.ready < 0 {
				return s.cause
			}
			return nil
		}, reconnect.RunOptions{Policy: policy, Rand: rand.NewPCG(1, 2)})
		require.ErrorIs(t, err, errLost)
	})
	return waits
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

// runWithKicks runs a Run whose dials fail, with a channel that has room for three kicks, and
// returns when the dials came.
func runWithKicks(t *testing.T, prepare func(kick chan struct{})) []time.Duration {
	var dials []time.Duration
	synctest.Test(t, func(t *testing.T) {
		kick := make(chan struct{}, 3)
		prepare(kick)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour-time.Second)
		defer cancel()
		start := time.Now()
		err := reconnect.Run(ctx, func(context.Context) (*runConn, error) {
			dials = append(dials, time.Since(start))
			time.Sleep(time.Minute)
			return nil, errLost
		}, func(context.Context, *runConn, *reconnect.Session) error { return nil },
			&reconnect.RunOptions{Policy: every(time.Hour), Kick: kick})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	return dials
}

// The tests of run.go that are about verdicts: what it makes of each error, and of each way in which a server behaves badly.

// answered is an error with the status code of an answer, as those of a dialer are.
type answered int

func (a answered) Error() string { return "answered" }

func (a answered) StatusCode() int { return int(a) }

// hostility is a way in which a server behaves badly, and what must come of it.
type hostility struct {
	handshake conntest.Answer  // instead of an accepted WebSocket
	handler   conntest.Handler // or what it does with one
	class     backoff.Class
	cause     func(error) bool
	lasts     bool // the session lasts until a limit of ours ends it
}

// isErr, asErr and hasStatus make the check of a hostility's cause.
func isErr(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func asErr[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

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

var (
	tooBig  = asErr[*conn.TooBigError]
	tooSlow = asErr[*conn.SlowMessageError]
	broken  = asErr[*conn.ProtocolError]
)

// bad is the hostility of a server that sends a frame by which the session ends.
func bad(cause func(error) bool, f conntest.Frame) hostility {
	return hostility{handler: conntest.Frames(f), class: slow, cause: cause}
}

// unfinished is the hostility of a server that sends a frame, and never the rest of its message.
func unfinished(f conntest.Frame) hostility {
	return hostility{handler: conntest.Frames(f), class: retry, cause: tooSlow, lasts: true}
}

var hostilities = map[string]hostility{
	"oversized message":       bad(tooBig, conntest.Frame{Head: whole, Payload: make([]byte, 5000)}),
	"endless fragments":       {handler: endless(1000), class: slow, cause: tooBig},
	"endless empty fragment":  {handler: endless(0), class: retry, cause: tooSlow, lasts: true},
	"unfinished message":      unfinished(conntest.Frame{Head: conntest.TextFrame, Payload: []byte("to be")}),
	"unfinished frame":        unfinished(conntest.Frame{Head: whole, Length: 4000, Payload: []byte("to be")}),
	"endless frame":           bad(tooBig, conntest.Frame{Head: whole, Length: 1 << 62, Payload: []byte("to be")}),
	"reserved bits":           bad(broken, conntest.Frame{Head: whole | 0x20}),
	"unknown opcode":          bad(broken, conntest.Frame{Head: conntest.Fin | 0x5}),
	"continuation of nothing": bad(broken, conntest.Frame{Head: conntest.Fin}),
	"large ping":              bad(broken, conntest.Frame{Head: conntest.Fin | 0x9, Payload: make([]byte, 126)}),
	"impossible close code":   bad(broken, conntest.Frame{Head: conntest.Fin | 0x8, Payload: []byte{0x03, 0xee}}),
	"frame cut short":         {handler: cutShort, class: retry, cause: isErr(io.ErrUnexpectedEOF)},
	"101 and hanging up":      {handler: func(context.Context, *websocket.Conn, *http.Request) {}, class: retry, cause: isErr(io.EOF)},

	"garbage for an answer":     {handshake: conntest.Garbage([]byte("\x00\x01SSH-2.0\r\n\r\n")), class: slow, cause: asErr[*dialer.Error]},
	"hanging up":                {handshake: conntest.HangUp, class: retry, cause: isErr(io.EOF)},
	"no answer":                 {handshake: conntest.Hang, class: overload, cause: isErr(context.DeadlineExceeded)},
	"answer that trickles":      {handshake: trickling(1, time.Second, conntest.Status(200, nil)), class: overload, cause: isErr(context.DeadlineExceeded)},
	"redirect loop":             {handshake: http.RedirectHandler("", http.StatusFound).ServeHTTP, class: slow, cause: hasStatus(302)},
	"redirect into an intranet": {handshake: http.RedirectHandler("http://10.0.0.1/admin", http.StatusFound).ServeHTTP, class: slow, cause: hasStatus(302)},
	"1 MiB of header":           {handshake: conntest.Status(200, http.Header{"X": {strings.Repeat("x", 1<<20)}}), class: slow, cause: asErr[*dialer.Error]},
	"wrong key":                 {handshake: conntest.BadAccept, class: slow, cause: hasStatus(101)},
	"a page":                    {handshake: conntest.Status(200, nil), class: slow, cause: hasStatus(200)},
}

// endless is a handler that begins a message and never ends it, in bursts of ten fragments of size
// bytes.
func endless(size int) conntest.Handler {
	fragment := conntest.Frame{Payload: make([]byte, size)}
	return func(ctx context.Context, c *websocket.Conn, _ *http.Request) {
		ctx = c.CloseRead(ctx)
		pipe, burst := conntest.PipeOf(ctx), bytes.Repeat(fragment.Bytes(), 10)
		pipe.Inject(conntest.ToClient, conntest.Frame{Head: conntest.TextFrame}.Bytes())
		for {
			if _, err := pipe.Server().Write(burst); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// cutShort is a handler whose connection ends inside a frame.
func cutShort(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	conntest.PipeOf(ctx).Cut(conntest.ToClient, 100)
	c.Write(ctx, websocket.MessageText, make([]byte, 1000))
}

// wantEcho reads until an echo comes. Before it comes a seam for each session of a hostility
// that got so far.
func wantEcho(t *testing.T, c *reconnect.Conn, server *wsServer, h hostility) {
	t.Helper()
	if h.handler != nil {
		for range 4 {
			_, err := c.Read(t.Context(), nil)
			var seam *reconnect.Seam
			require.ErrorAs(t, err, &seam)
			require.True(t, h.cause(seam.Cause), "%T: %v", seam.Cause, seam.Cause)
		}
	}
	for server.network.Count(wsAddr).Dials < 5 {
		time.Sleep(time.Second)
	}
	require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
	require.NoError(t, c.Write(t.Context(), text("well again")))
	synctest.Wait()
	m, err := c.Read(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "well again", string(m.Data))
}

// trickling gives answer a, of which n bytes arrive per interval.
func trickling(n int, interval time.Duration, a conntest.Answer) conntest.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		conntest.PipeOf(r.Context()).Trickle(conntest.ToClient, n, interval)
		a(w, r)
	}
}

// elapsedPolicy is a policy that notes how long each outage has lasted.
type elapsedPolicy struct{ elapsed *[]time.Duration }

func (p elapsedPolicy) Next(a backoff.History, _ *rand.Rand) (backoff.Step, bool) {
	*p.elapsed = append(*p.elapsed, a.Elapsed)
	return backoff.Step{Wait: time.Second}, true
}

// feed is a handler that wants a login, sends three messages and hangs up.
func feed(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	_, login, err := c.Read(r.Context())
	if err != nil || string(login) != "me" {
		return
	}
	for i := range 4 {
		if err := c.Write(r.Context(), websocket.MessageText, fmt.Append(nil, i)); err != nil {
			return
		}
	}
}

func serveLines(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		if login, _ := bufio.NewReader(nc).ReadString('\n'); login == "me\r\n" {
			io.WriteString(nc, "welcome\r\n1\r\n2\r\n3\r\nhal")
		}
		nc.Close()
	}
}

// starter is a connection that can be read after its close frame.
type starter struct {
	conn.Conn
	started chan int // gets the code
}

func (c starter) StartClose(code int, _ string) error {
	c.started <- code
	return nil
}

// halfClosingConn is a connection whose CloseWrite fails.
type halfClosingConn struct {
	*conntest.Fake
	err error
}

func (h *halfClosingConn) CloseWrite() error { return h.err }

// rest reads until c has ended, and returns how many messages there were.
func rest(t *testing.T, c *reconnect.Conn) (messages int) {
	t.Helper()
	for {
		_, err := c.Read(context.Background(), nil)
		if _, seam := err.(*reconnect.Seam); err != nil && !seam {
			return messages
		} else if err == nil {
			messages++
		}
	}
}

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

// deaf is a connection whose writes fail while its reads go on.
type deaf struct{ conn.Conn }

func (deaf) Write(conn.Message) error { return errLost }

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
