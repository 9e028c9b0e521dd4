package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promises 1, 3, 5, 6, 7 and 11, whatever happens: a virtual minute of random
// faults and random use for each seed. REDIAL_SEEDS is how many seeds; one of them
// is run again with -run 'Storm/^17$', though the scheduler is not repeated.
func TestAStormIsSurvived(t *testing.T) {
	seeds := 100
	if testing.Short() || raceEnabled() {
		seeds = 20
	}
	if n, err := strconv.Atoi(os.Getenv("REDIAL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := &storm{
				seed: seed, ready: []uint64{}, seams: []uint64{},
				begun: make(map[string]bool), arrived: make(map[string]int), fates: make(map[string]reconnect.Fate),
			}
			inVenue(t, s.serve, s.run)
		})
	}
}

// The longest that the default policy, the answers of the storm and the limits can
// keep a client away: a limit on connecting, what a 503 says, and the cap after overload.
const settling = time.Minute + 5*time.Second + 5*time.Minute

// storm is one seed.
type storm struct {
	*venue
	t    *testing.T
	seed uint64
	conn *reconnect.Conn

	push   bool          // or pull
	length time.Duration // of the storm
	users  sync.WaitGroup

	mu      sync.Mutex      // guards what follows
	started []uint64        // sessions
	ready   []uint64        // of those
	seams   []uint64        // sessions that the reader saw the end of
	session uint64          // of the last message
	next    int             // number of the next message of that session
	begun   map[string]bool // messages of which the server saw something
	arrived map[string]int  // whole
	fates   map[string]reconnect.Fate
	dials   int
}

// stream is the random numbers of one actor.
func (s *storm) stream(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, actor)) }

// upTo draws from [0, d).
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

func (s *storm) run(t *testing.T, v *venue) {
	s.t, s.venue = t, v
	ctx, cancel := context.WithCancel(t.Context())
	s.conn = v.open(t, s.options())
	defer func() { // also of a test that fails
		cancel()
		s.conn.Close()
		s.users.Wait()
	}()
	for actor := range uint64(3) {
		s.users.Go(func() { s.write(ctx, s.stream(10+actor)) })
	}
	s.users.Go(func() { s.read(s.stream(20)) })
	s.users.Go(func() { s.poke(s.stream(30)) })

	weather := s.stream(40)
	for s.now() < s.length {
		time.Sleep(upTo(weather, 3*time.Second))
		s.mishap(weather)
	}
	if !s.early() {
		s.converge(ctx)
	}
	cancel()
	s.close()
	s.users.Wait()
	s.check()
}

// early says that the Conn is to be closed in the middle of the storm.
func (s *storm) early() bool { return s.length < time.Minute }

// close takes no time, unless there is a dial that does not obey its context.
func (s *storm) close() {
	closing := s.now()
	require.NoError(s.t, s.conn.Close())
	if s.early() {
		require.Less(s.t, s.now()-closing, 20*time.Second)
	} else {
		require.Equal(s.t, closing, s.now())
	}
	require.Zero(s.t, s.network.Open())
}

// options are another set for each seed.
func (s *storm) options() *reconnect.Options {
	r := s.stream(0)
	s.length = time.Minute
	if r.IntN(4) == 0 {
		s.length = upTo(r, time.Minute)
	}
	s.dialer.Conn.WriteTimeout = time.Second + upTo(r, 10*time.Second)
	if r.IntN(4) == 0 {
		s.dialer.Compression = dialer.CompressionContextTakeover
	}
	s.Options = &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 64}
	o := &reconnect.Options{
		OnSession:   s.login,
		OpenTimeout: 5 * time.Second,
		Down:        reconnect.Down(r.IntN(2)),
		Liveness:    reconnect.Liveness{Limit: 3*time.Second + upTo(r, 30*time.Second)},
		Run: reconnect.RunOptions{
			Rand: s.stream(1),
			Trace: &reconnect.Trace{
				DialStart:    func(reconnect.DialStart) { s.count() },
				SessionStart: func(n *reconnect.Session) { s.note(&s.started, n.N) },
				SessionReady: func(n *reconnect.Session) { s.note(&s.ready, n.N) },
			},
		},
	}
	if r.IntN(2) == 0 {
		o.Run.Policy = &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}
	}
	if s.push = r.IntN(2) == 0; s.push {
		o.OnMessage = s.message
		o.OnSeam = s.seam
	} else {
		o.Inbox.Messages = 1 + r.IntN(64)
	}
	return o
}

func (s *storm) note(list *[]uint64, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, n)
}

// count finds out about a hot loop: there are some 60 dials in a storm at most.
func (s *storm) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dials++; s.dials == 300 {
		s.t.Error("a hot loop")
		go s.conn.Close()
	}
}

func (s *storm) login(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(text("login")); err != nil {
		return err
	}
	m, err := o.Read()
	if err == nil && string(m.Data) != "welcome" {
		s.t.Errorf("session %d: %q is not the answer to a login", o.Session, m.Data)
	}
	return err
}

// serve is the server: it wants a login, counts to the client and notes what
// the client says.
func (s *storm) serve(ctx context.Context, c *websocket.Conn, _ *http.Request) {
	if _, login, err := c.Read(ctx); err != nil || string(login) != "login" {
		if err == nil {
			s.t.Errorf("%.20q came before the login", login)
		}
		return
	}
	if c.Write(ctx, websocket.MessageText, []byte("welcome")) != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	counting.Go(func() {
		for i := 0; c.Write(ctx, websocket.MessageText, fmt.Appendf(nil, "%d %s", i, strings.Repeat("-", i%7*100))) == nil; i++ {
			time.Sleep(100 * time.Millisecond)
		}
	})
	defer counting.Wait()
	defer cancel()
	c.SetReadLimit(1 << 20)
	for {
		_, message, err := c.Reader(ctx)
		if err != nil {
			return
		}
		data, err := io.ReadAll(message)
		s.hear(string(data), err)
	}
}

// hear notes what the server has read of a message.
func (s *storm) hear(data string, err error) {
	id, _, named := strings.Cut(data, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if named {
		s.begun[id] = true
	}
	if err == nil {
		s.arrived[id]++
	}
}

// write writes small and large messages, and often has no patience.
func (s *storm) write(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(upTo(r, 2*time.Second))
		id, size := strconv.FormatUint(r.Uint64(), 36), r.IntN(500)
		if r.IntN(10) == 0 {
			size = 100_000 // more than the window
		}
		impatient, cancel := context.WithTimeout(ctx, upTo(r, 5*time.Second))
		err := s.conn.Write(impatient, text(id+" "+strings.Repeat("x", size)))
		cancel()
		fate := reconnect.Written
		if w, ok := errors.AsType[*reconnect.WriteError](err); ok {
			fate = w.Fate
		} else if err != nil {
			s.t.Errorf("write: %v", err)
		}
		s.mu.Lock()
		s.fates[id] = fate
		s.mu.Unlock()
	}
}

// read pulls, if that is what the options say, with little patience, and
// sometimes is away.
func (s *storm) read(r *rand.Rand) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), upTo(r, 3*time.Second))
		m, err := s.conn.Read(ctx, nil)
		cancel()
		seam, lost := errors.AsType[*reconnect.Seam](err)
		switch {
		case err == nil:
			s.message(m)
		case lost:
			s.seam(seam)
		case errors.Is(err, context.DeadlineExceeded):
			time.Sleep(upTo(r, 100*time.Millisecond))
		default: // closed, or push
			return
		}
		if r.IntN(50) == 0 && s.now() < time.Minute {
			time.Sleep(upTo(r, 10*time.Second))
		}
	}
}

// message checks the stream: counted from 0 in each session, and a seam before the next.
func (s *storm) message(m reconnect.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Session != s.session {
		if len(s.seams) > 0 && m.Session <= s.seams[len(s.seams)-1] || s.next > 0 {
			s.t.Errorf("a message of session %d after %d of session %d and the seams %v", m.Session, s.next, s.session, s.seams)
		}
		s.session, s.next = m.Session, 0
	}
	if got, _, _ := strings.Cut(string(m.Data), " "); got != strconv.Itoa(s.next) {
		s.t.Errorf("session %d: message %.20q, want %d", m.Session, m.Data, s.next)
	}
	s.next++
}

func (s *storm) seam(seam *reconnect.Seam) {
	s.note(&s.seams, seam.Session)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = 0
	if seam.Lost != 1 || seam.Dropped != 0 || seam.Session < s.session {
		s.t.Errorf("after a message of session %d the seam %+v", s.session, seam)
	}
}

// poke uses what else there is.
func (s *storm) poke(r *rand.Rand) {
	for {
		time.Sleep(upTo(r, 4*time.Second))
		if s.now() >= time.Minute {
			return
		}
		if r.IntN(2) == 0 {
			s.conn.Kick()
		} else {
			s.conn.Redial(s.conn.Status().Session, errLost)
		}
	}
}

// converge wants, now that nothing goes wrong any more, a session that stays.
func (s *storm) converge(ctx context.Context) {
	s.network.Fault(venueAddr)
	s.Next()
	s.network.ResetAll(venueAddr)
	time.Sleep(10 * time.Second) // for a reader that is away: nobody reads for it
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	require.NoError(s.t, s.conn.Await(ctx, reconnect.StateReady), "not ready in time: %+v", s.conn.Status())
	dials, session := s.network.Count(venueAddr).Dials, s.conn.Status().Session
	time.Sleep(time.Minute)
	require.Equal(s.t, session, s.conn.Status().Session)
	require.Equal(s.t, dials, s.network.Count(venueAddr).Dials)
	require.NoError(s.t, s.conn.Write(s.t.Context(), conn.Message{Type: conn.Text, Data: []byte("last word")}))
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, 1, s.arrived["last"])
	require.Equal(s.t, session, s.session, "the session of the last message")
}

// check is done when all is over.
func (s *storm) check() {
	for i, n := range s.started {
		require.Equal(s.t, uint64(i+1), n, "sessions grow by one")
	}
	switch live := len(s.ready) - 1; {
	case s.push:
		require.Equal(s.t, s.ready, s.seams, "one seam for each ready session, the last one that of Close")
	case s.early():
		require.Equal(s.t, s.ready[:len(s.seams)], s.seams, "one seam for each ready session, as far as was read")
	default:
		require.Equal(s.t, s.ready[:live], s.seams, "one seam for each ready session but that which was closed")
	}
	for id, fate := range s.fates {
		require.LessOrEqual(s.t, s.arrived[id], 1, "%s was sent twice", id)
		if fate == reconnect.Dropped {
			require.False(s.t, s.begun[id], "%s was dropped, and yet it came", id)
		}
	}
	count := s.network.Count(venueAddr)
	require.Equal(s.t, 1, count.MaxDialling)
	require.Equal(s.t, 1, count.MaxHeld)
}
