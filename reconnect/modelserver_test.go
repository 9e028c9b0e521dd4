package reconnect_test

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
)

// parcel is one message of a [model], and what became of it.
type parcel struct {
	id            string
	actor, number int
	order         int // of acceptance; 0: by Write
	out           reconnect.Out
	due           time.Time // too late; zero: never
	refused       error
	fates         []reconnect.Receipt
	handed        []uint64 // the sessions that may have got it
	whole         int      // those of them that said so
	arrived       []uint64 // the sessions by which the peer got it, whole
	begun         bool     // the peer got something of it
}

// check compares the fate of a message with what happened to it.
func (p *parcel) check(t *testing.T) {
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

// spy is a connection that notes in the ledger what it is handed.
type spy struct {
	conn.Conn
	m       *model
	n       uint64 // of the session
	writing bool   // guarded by the model's lock
}

func (s *spy) begin(session uint64) { s.n = session }

func (s *spy) Write(m conn.Message) error {
	p := s.hand(m)
	err := s.Conn.Write(m)
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.writing = false
	if p != nil && !errors.Is(err, conn.ErrNotWritten) {
		p.handed = append(p.handed, s.n)
		if err == nil {
			p.whole++
		}
	}
	return err
}

// hand checks that the message may be written now.
func (s *spy) hand(m conn.Message) *parcel {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.writing {
		s.m.t.Error("two writes at once")
	}
	s.writing = true
	id, _, _ := strings.Cut(string(m.Data), " ")
	p := s.m.parcels[id]
	if p == nil {
		return nil
	}
	s.m.log("%s handed to %d", id, s.n)
	switch {
	case !p.due.IsZero() && !time.Now().Before(p.due):
		s.m.t.Errorf("%s was sent %v too late", id, time.Since(p.due))
	case len(p.fates) > 0:
		s.m.t.Errorf("%s was sent after it was told %v", id, p.fates)
	case p.order > 0 && p.order < s.m.lastSent:
		s.m.t.Errorf("%s was sent after a later one", id)
	}
	if p.order > 0 {
		s.m.lastSent = p.order
	}
	return p
}

// arrive notes what the peer got by one session, and asserts the order of each sender.
func (m *model) arrive(session uint64, data string, whole bool, last map[int]int) {
	id, _, named := strings.Cut(data, " ")
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parcels[id]
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

// beginning reports whether data is less than a message that was sent, and what that
// begins with.
func (m *model) beginning(data string) bool {
	id, _, _ := strings.Cut(data, " ")
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.parcels[id]
	return p != nil && len(data) < len(p.out.Data) && strings.HasPrefix(string(p.out.Data), data)
}

// modelVenue is a model over real WebSockets, with the weather of a storm.
type modelVenue struct {
	*model
	*venue
}

func (w *modelVenue) run(t *testing.T, v *venue) {
	w.venue = v
	r := w.model.stream(30)
	v.dialer.Conn.WriteTimeout = time.Second + upTo(r, 10*time.Second)
	w.o.Liveness.Limit = 3*time.Second + upTo(r, 30*time.Second)
	weather := &venueWeather{venue: v}
	ctx, cancel := context.WithCancel(t.Context())
	w.users.Go(func() {
		for ctx.Err() == nil {
			time.Sleep(upTo(r, 3*time.Second))
			weather.mishap(r)
		}
	})
	time.AfterFunc(30*time.Second, cancel)
	w.storm(t, reconnect.DialFunc(w.Dial), func() {
		weather.calm()
		v.network.ResetAll(venueAddr)
	})
	cancel()
	weather.farewells.Wait()
	require.Zero(t, v.network.Open())
}

// Dial returns a spy that can do what a WebSocket can.
func (w *modelVenue) Dial(ctx context.Context) (conn.Conn, error) {
	opened, err := w.dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	ws := opened.(*conn.WebSocket)
	return struct {
		*spy
		conn.Pinger
		conn.Idler
		conn.BlockNotifier
	}{&spy{Conn: ws, m: w.model}, ws, ws, ws}, nil
}

func (w *modelVenue) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
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

// modelDesk is a model over framed TCP.
type modelDesk struct {
	*model
	desk *desk
}

func (w *modelDesk) run(t *testing.T, d *desk) {
	w.desk = d
	r := w.stream(30)
	d.dialer.Conn.WriteTimeout = time.Second + upTo(r, 10*time.Second)
	w.o.Liveness = reconnect.Liveness{Limit: 7*time.Second + upTo(r, 30*time.Second), Probe: w.probe} // 7: none while the server talks
	ctx, cancel := context.WithCancel(t.Context())
	var server sync.WaitGroup
	server.Go(func() { d.serve(ctx, w.serve) })
	w.users.Go(func() {
		for start := time.Now(); ctx.Err() == nil && time.Since(start) < 30*time.Second; {
			time.Sleep(upTo(r, 3*time.Second))
			d.mishap(r)
		}
	})
	w.storm(t, reconnect.DialFunc(w.Dial), func() {
		d.calm()
		d.network.ResetAll(deskAddr)
	})
	require.Zero(t, d.network.Open())
	cancel()
	server.Wait()
}

func (w *modelDesk) probe(_ context.Context, write func(conn.Message) error) error {
	err := write(text("ping"))
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logins++
	}
	return err
}

// Dial returns a spy that can do what a Framed can.
func (w *modelDesk) Dial(ctx context.Context) (conn.Conn, error) {
	opened, err := w.desk.dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	framed := opened.(*conn.Framed)
	return struct {
		*spy
		conn.Idler
		conn.BlockNotifier
		conn.HalfCloser
	}{&spy{Conn: framed, m: w.model}, framed, framed, framed}, nil
}

// serve notes what one connection brings, half messages too.
func (w *modelDesk) serve(nc net.Conn) {
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
			go func() { defer close(talking); chatter(nc) }()
			defer func() { nc.Close(); <-talking }()
		}
		if err != nil {
			return
		}
	}
}

// chatter says something every two seconds.
func chatter(nc net.Conn) {
	for {
		if _, err := io.WriteString(nc, "\x00\x00\x00\x07welcome"); err != nil {
			return
		}
		time.Sleep(2*time.Second + 1)
	}
}

// modelFakes is a model over fakes.
type modelFakes struct {
	*model
	faults *rand.Rand // of the dials
	dials  uint64
	mu     sync.Mutex // guards live
	live   *conntest.Fake
}

func (w *modelFakes) run(t *testing.T) {
	w.faults, w.exact = w.stream(40), true
	r := w.stream(41)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.users.Go(func() {
		for start := time.Now(); ctx.Err() == nil && time.Since(start) < 30*time.Second; {
			time.Sleep(upTo(r, 5*time.Second))
			w.lose(r)
		}
	})
	w.storm(t, reconnect.DialFunc(w.Dial), func() {
		w.lose(r)
	})
}

// lose is what goes wrong with a connection between two writes, or in the middle of one.
func (w *modelFakes) lose(r *rand.Rand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live != nil {
		w.live.Fail(fmt.Errorf("%w after %d", errLost, r.IntN(10)))
	}
}

func (w *modelFakes) Dial(ctx context.Context) (conn.Conn, error) {
	if !w.calm.Load() && w.faults.IntN(3) == 0 {
		return nil, errLost
	}
	w.dials++
	fake := conntest.NewFake(nil)
	fake.Deliver(text("welcome"))
	w.mu.Lock()
	w.live = fake
	w.mu.Unlock()
	return &spy{Conn: &shaky{Fake: fake, w: w, faults: w.stream(1000 + w.dials), last: make(map[int]int)}, m: w.model}, nil
}

// shaky is a fake whose writes take time and fail.
type shaky struct {
	*conntest.Fake
	w       *modelFakes
	faults  *rand.Rand // of its writes
	session uint64
	last    map[int]int
}

func (s *shaky) Write(m conn.Message) error {
	what := s.faults.IntN(20)
	if s.w.calm.Load() {
		what = 19
	}
	switch {
	case what == 0:
		s.FailWrite(errLost)
	case what == 1:
		s.FailWrite(errNotBegun)
	case what == 2:
		s.Hold() // until it is lost, or released
		release := time.AfterFunc(upTo(s.faults, 10*time.Second), s.Release)
		defer release.Stop()
	case what < 8:
		time.Sleep(upTo(s.faults, 2*time.Second))
	}
	err := s.Fake.Write(m)
	fmt.Sscanf(string(m.Data), "login %d", &s.session)
	if err == nil {
		s.w.arrive(s.session, string(m.Data), true, s.last)
	}
	return err
}
