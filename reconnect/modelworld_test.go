package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

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

// A seed over fakes is the same to the nanosecond each time: what fails can be looked
// at again, and nothing in the library draws lots of its own.
func TestALedgerReplaysExactly(t *testing.T) {
	for seed := range uint64(10) {
		var traces [2][]string
		for i := range traces {
			synctest.Test(t, func(t *testing.T) {
				w := &modelFakes{model: newModel(seed)}
				w.run(t)
				traces[i] = w.trace
				slices.Sort(traces[i]) // who is first within an instant is the scheduler's
			})
		}
		require.NotEmpty(t, traces[0])
		require.Equal(t, traces[0], traces[1], "seed %d", seed)
	}
}
