package run_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// sentMessage is one message of a [model], and what became of it.
type sentMessage struct {
	id            string
	actor, number int
	order         int // of acceptance; 0: by Write
	out           reconnect.Outgoing
	due           time.Time // when it is too late; zero: never
	refused       error
	fates         []reconnect.Receipt
	handed        []uint64 // the sessions that may have sent it
	whole         int      // how many of them wrote it whole
	arrived       []uint64 // the sessions by which the peer got it, whole
	begun         bool     // the peer got something of it
}

// check compares the fate of a message with what happened to it.
func (p *sentMessage) check(t *testing.T) {
	got := p.fates[0]
	story := []any{"%s: %v by %d, handed to %v, arrived by %v", p.id, got.Fate, got.Session, p.handed, p.arrived}
	switch got.Fate {
	case reconnect.FateWritten:
		require.Equal(t, 1, p.whole, story...)
	case reconnect.FateUnknown:
		require.NotEmpty(t, p.handed, story...)
		require.Zero(t, p.whole, story...)
	case reconnect.FateDropped:
		require.Empty(t, p.handed, story...)
		require.Empty(t, p.arrived, story...)
		require.False(t, p.begun, story...)
	}
	if p.order > 0 {
		require.Equal(t, len(p.handed), got.Tries, p.id)
	}
	if !p.out.Repeatable {
		require.LessOrEqual(t, len(p.handed), 1, "%s was sent again", p.id)
	}
	for _, session := range p.arrived {
		require.Contains(t, p.handed, session, "%s arrived by a session that it was not given to", p.id)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(p.arrived))), len(p.arrived), "%s arrived twice by one session", p.id)
	if p.out.Session != 0 {
		for _, session := range p.handed {
			require.Equal(t, p.out.Session, session, "%s was sent by another session", p.id)
		}
	}
}

// watchedConn is a connection that records what it is given to write.
type watchedConn struct {
	conn.Conn
	m       *model
	n       uint64 // of the session
	writing bool   // guarded by the model's lock
}

func (c *watchedConn) begin(session uint64) { c.n = session }

func (c *watchedConn) Write(m conn.Message) error {
	_, err := c.record([]conn.Message{m}, func() (int, error) {
		err := c.Conn.Write(m)
		if err != nil {
			return 0, err
		}
		return 1, nil
	})
	return err
}

// watchedTransport is a watchedConn over a Transport.
type watchedTransport struct {
	*watchedConn
	conn.Transport
}

func (c *watchedTransport) WriteBatch(ms []conn.Message) (n int, err error) {
	return c.record(ms, func() (int, error) { return c.Transport.WriteBatch(ms) })
}

// record records what write, which returns what a WriteBatch does, makes of ms.
func (c *watchedConn) record(ms []conn.Message, write func() (int, error)) (n int, err error) {
	given := c.hand(ms)
	n, err = write()
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.writing = false
	for i, p := range given {
		begun := i < n || i == n && err != nil && !errors.Is(err, conn.ErrNotWritten)
		if p == nil || !begun {
			continue
		}
		p.handed = append(p.handed, c.n)
		if i < n {
			p.whole++
		}
	}
	for _, p := range given[:min(n+1, len(given))] {
		if p != nil && p.order > 0 && p.out.Session == 0 {
			c.m.lastSent = max(c.m.lastSent, p.order)
		}
	}
	return n, err
}

// hand checks that the messages may be written now, and returns those that were sent.
func (c *watchedConn) hand(ms []conn.Message) (given []*sentMessage) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.writing {
		c.m.t.Error("two writes at once")
	}
	c.writing = true
	last := c.m.lastSent
	for _, m := range ms {
		id, _, _ := strings.Cut(string(m.Data), " ")
		p := c.m.sent[id]
		given = append(given, p)
		if p == nil {
			continue
		}
		c.m.log("%s handed to %d", id, c.n)
		switch {
		case !p.due.IsZero() && !time.Now().Before(p.due):
			c.m.t.Errorf("%s was sent %v too late", id, time.Since(p.due))
		case len(p.fates) > 0:
			c.m.t.Errorf("%s was sent after it was reported: %v", id, p.fates)
		case p.order > 0 && p.order < last && p.out.Session == 0: // one for an old session may be later
			c.m.t.Errorf("%s was sent after a later one", id)
		}
		if p.order > 0 && p.out.Session == 0 {
			last = p.order
		}
	}
	return given
}

// arrive records what the peer got by one session, and checks the order of the messages of each
// user.
func (m *model) arrive(session uint64, data string, whole bool, last map[int]int) {
	id, _, named := strings.Cut(data, " ")
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.sent[id]
	if !named || p == nil {
		return
	}
	p.begun = true
	if !whole {
		return
	}
	if len(data) != len(p.out.Data) {
		m.t.Errorf("%s arrived with %d bytes of %d", id, len(data), len(p.out.Data))
	}
	p.arrived = append(p.arrived, session)
	if before, ok := last[p.actor]; ok && p.actor < 7 && p.number <= before {
		m.t.Errorf("%s arrived after %d", id, before)
	}
	last[p.actor] = p.number
}

// beginning reports whether data is the beginning of a message that was sent, and not all of
// it.
func (m *model) beginning(data string) bool {
	id, _, _ := strings.Cut(data, " ")
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.sent[id]
	return p != nil && len(data) < len(p.out.Data) && strings.HasPrefix(string(p.out.Data), data)
}

// modelWS is a model over real WebSockets, with random faults.
type modelWS struct {
	*model
	*scene.WSServer
}

func (w *modelWS) run(t *testing.T, server *scene.WSServer) {
	w.WSServer = server
	r := w.model.stream(30)
	server.Dialer.Conn.WriteTimeout = time.Second + scene.UpTo(r, 10*time.Second)
	w.o.Liveness.Limit = 3*time.Second + scene.UpTo(r, 30*time.Second)
	faults := &wsFaults{WSServer: server}
	ctx, cancel := context.WithCancel(t.Context())
	w.users.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(scene.UpTo(r, 3*time.Second))
			faults.Inject(r)
		}
	})
	time.AfterFunc(30*time.Second, cancel)
	w.drive(t, reconnect.DialFunc(w.Dial), func() {
		faults.Stop()
		server.Network.ResetAll(scene.WSAddr)
	})
	cancel()
	faults.farewells.Wait()
	require.Zero(t, server.Network.Count("").Open)
}

// Dial returns a watchedConn with the abilities of a WebSocket.
func (w *modelWS) Dial(ctx context.Context) (conn.Conn, error) {
	opened, err := w.Dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	ws := opened.(*conn.WebSocket)
	return struct {
		*watchedTransport
		conn.Pinger
	}{&watchedTransport{&watchedConn{Conn: ws, m: w.model}, ws}, ws}, nil
}

func (w *modelWS) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	_, login, err := c.Read(ctx)
	if err != nil {
		return
	}
	var session uint64
	if _, err := fmt.Sscanf(string(login), "login %d", &session); err != nil {
		w.t.Errorf("%.20q came before the login", login)
	}
	ctx, cancel := context.WithCancel(ctx)
	var talking sync.WaitGroup
	defer talking.Wait()
	defer cancel()
	talking.Go(func() {
		for c.Write(ctx, websocket.MessageText, []byte("welcome")) == nil {
			time.Sleep(2*time.Second + 1)
		}
	})
	c.SetReadLimit(1 << 20)
	last := make(map[int]int)
	for {
		_, message, err := c.Reader(ctx)
		if err != nil {
			return
		}
		data, err := readAll(ctx, c, message, w.beginning)
		w.arrive(session, data, err == nil, last)
	}
}

// modelFramed is a model over framed TCP, with random faults.
type modelFramed struct {
	*model
	server *scene.FramedServer
}

func (w *modelFramed) run(t *testing.T, server *scene.FramedServer) {
	w.server = server
	r := w.stream(30)
	server.Dialer.Conn.WriteTimeout = time.Second + scene.UpTo(r, 10*time.Second)
	w.o.Liveness = reconnect.Liveness{
		Limit: 7*time.Second + scene.UpTo(r, 30*time.Second), // 7: none while the server talks
		Probe: w.probe,
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(ctx, w.serve) })
	w.users.Go(func() {
		for start := time.Now(); ctx.Err() == nil && time.Since(start) < 30*time.Second; {
			time.Sleep(scene.UpTo(r, 3*time.Second))
			server.Inject(r)
		}
	})
	w.drive(t, reconnect.DialFunc(w.Dial), func() {
		server.Stop()
		server.Network.ResetAll(scene.FramedAddr)
	})
	require.Zero(t, server.Network.Count("").Open)
	cancel()
	serving.Wait()
}

func (w *modelFramed) probe(_ context.Context, write func(conn.Message) error) error {
	err := write(scene.Text("ping"))
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logins++
	}
	return err
}

// Dial returns a watchedConn with the abilities of a Framed.
func (w *modelFramed) Dial(ctx context.Context) (conn.Conn, error) {
	opened, err := w.server.Dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	framed := opened.(*conn.Framed)
	return struct {
		*watchedTransport
		conn.HalfCloser
	}{&watchedTransport{&watchedConn{Conn: framed, m: w.model}, framed}, framed}, nil
}

// serve records what one connection brings, parts of messages too.
func (w *modelFramed) serve(nc net.Conn) {
	var session uint64
	last, in := make(map[int]int), bufio.NewReader(nc)
	for n := 0; ; n++ {
		data, err := readFrame(in)
		switch {
		case n > 0:
			w.arrive(session, string(data), err == nil, last)
		case err == nil:
			if _, err := fmt.Sscanf(string(data), "login %d", &session); err != nil {
				w.t.Errorf("%.20q came before the login", data)
			}
			talking := make(chan struct{})
			go func() { defer close(talking); keepTalking(nc) }()
			defer func() { nc.Close(); <-talking }()
		}
		if err != nil {
			return
		}
	}
}

// keepTalking sends a message every two seconds.
func keepTalking(nc net.Conn) {
	for {
		if _, err := io.WriteString(nc, "\x00\x00\x00\x07welcome"); err != nil {
			return
		}
		time.Sleep(2*time.Second + 1)
	}
}

// modelFakes is a model over fakes. It repeats exactly.
type modelFakes struct {
	*model
	faults *rand.Rand // of the dials
	dials  uint64
	mu     sync.Mutex // guards live
	live   *conntest.Fake
}

func (w *modelFakes) run(t *testing.T) {
	w.faults, w.exact = w.stream(40), true
	if w.steady || w.seed%2 == 0 { // the scheduler decides what is in a batch
		w.batch = 1
	}
	r := w.stream(41)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.users.Go(func() {
		for start := time.Now(); ctx.Err() == nil && time.Since(start) < 30*time.Second; {
			time.Sleep(scene.UpTo(r, 5*time.Second))
			w.lose(r)
		}
	})
	w.drive(t, reconnect.DialFunc(w.Dial), func() {
		w.lose(r)
	})
}

// lose cuts the connection, between two writes or in the middle of one.
func (w *modelFakes) lose(r *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live != nil {
		w.live.Fail(fmt.Errorf("%w after %d", scene.ErrLost, r.IntN(10)))
	}
}

func (w *modelFakes) Dial(ctx context.Context) (conn.Conn, error) {
	if !w.calm.Load() && w.faults.IntN(3) == 0 {
		return nil, scene.ErrLost
	}
	w.dials++
	fake := conntest.NewFake(&conntest.FakeOptions{Transport: true})
	fake.Deliver(scene.Text("welcome"))
	w.mu.Lock()
	w.live = fake
	w.mu.Unlock()
	faulty := &faultyConn{Fake: fake, Transport: fake.Conn().(conn.Transport), w: w, faults: w.stream(1000 + w.dials), last: make(map[int]int)}
	watched := &watchedConn{Conn: faulty, m: w.model}
	if w.batch == 1 {
		return watched, nil
	}
	return &watchedTransport{watched, faulty}, nil
}

// faultyConn is a fake whose writes take time and fail.
type faultyConn struct {
	*conntest.Fake
	conn.Transport
	w       *modelFakes
	faults  *rand.Rand // of its writes
	session uint64
	last    map[int]int
}

// WriteBatch writes one message after the other, so that it can fail at each of them.
func (c *faultyConn) WriteBatch(ms []conn.Message) (n int, err error) {
	for n < len(ms) && err == nil {
		if err = c.Write(ms[n]); err == nil {
			n++
		}
	}
	return n, err
}

func (c *faultyConn) Write(m conn.Message) error {
	what := c.faults.IntN(20)
	if c.w.calm.Load() {
		what = 19
	}
	switch {
	case what == 0:
		c.FailWrite(scene.ErrLost)
	case what == 1:
		c.FailWrite(scene.ErrNotBegun)
	case what == 2:
		c.Hold() // until it is lost, or released
		release := time.AfterFunc(scene.UpTo(c.faults, 10*time.Second), c.Release)
		defer release.Stop()
	case what < 8:
		time.Sleep(scene.UpTo(c.faults, 2*time.Second))
	}
	err := c.Fake.Write(m)
	fmt.Sscanf(string(m.Data), "login %d", &c.session)
	if err == nil {
		c.w.arrive(c.session, string(m.Data), true, c.last)
	}
	return err
}

// readAll reads the rest of a message on the server. When a connection ends inside a message,
// coder/websocket may return what came as if it were all, because its reader takes the io.EOF
// of the connection for that of the message. So if data may be the beginning of a message,
// readAll looks for a next one: if there is none, the message was cut, and the error says why.
func readAll(
	ctx context.Context, c *websocket.Conn, message io.Reader, doubtful func(data string) bool,
) (string, error) {
	data, err := io.ReadAll(message)
	if err == nil && doubtful(string(data)) {
		_, _, err = c.Reader(ctx)
	}
	return string(data), err
}
