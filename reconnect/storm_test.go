package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Promises 1, 3, 5, 6, 7 and 11, whatever happens: a virtual minute of random
// faults and random use for each seed. REDIAL_SEEDS is how many seeds; one of them
// is run again with -run 'Storm/^17$', though the scheduler is not repeated.
func TestAStormIsSurvived(t *testing.T) {
	seeds := 100
	if testing.Short() {
		seeds = 20
	}
	if n, err := strconv.Atoi(os.Getenv("REDIAL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			s := &storm{seed: seed, arrived: make(map[string]int), fates: make(map[string]reconnect.Fate)}
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

	mu      sync.Mutex // guards what follows
	started []uint64   // sessions
	ready   []uint64   // of those
	seams   []uint64   // sessions that the reader saw the end of
	session uint64     // of the last message
	next    int        // number of the next message of that session
	arrived map[string]int
	fates   map[string]reconnect.Fate
	pokes   int
}

// stream is the random numbers of one actor.
func (s *storm) stream(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, actor)) }

// upTo draws from [0, d).
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

func (s *storm) run(t *testing.T, v *venue) {
	s.t, s.venue = t, v
	ctx, cancel := context.WithCancel(t.Context())
	s.conn = v.open(t, s.options())
	var users sync.WaitGroup
	defer func() { // also of a test that fails
		cancel()
		s.conn.Close()
		users.Wait()
	}()
	for actor := range uint64(3) {
		users.Go(func() { s.write(ctx, s.stream(10+actor)) })
	}
	users.Go(func() { s.read(s.stream(20)) })
	users.Go(func() { s.poke(s.stream(30)) })

	weather := s.stream(40)
	for s.now() < time.Minute {
		time.Sleep(upTo(weather, 3*time.Second))
		s.mishap(weather)
	}
	v.network.Fault(venueAddr)
	v.Next()
	v.Start()
	v.network.ResetAll(venueAddr)
	time.Sleep(10 * time.Second) // for a reader that is away: nobody reads for it
	s.converge(ctx)
	cancel()
	closing := s.now()
	require.NoError(t, s.conn.Close())
	require.Equal(t, closing, s.now())
	users.Wait()
	s.check()
}

// options are another set for each seed.
func (s *storm) options() *reconnect.Options {
	r := s.stream(0)
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
				SessionStart: func(n *reconnect.Session) { s.note(&s.started, n.N) },
				SessionReady: func(n *reconnect.Session) { s.note(&s.ready, n.N) },
			},
		},
	}
	if r.IntN(2) == 0 {
		o.Run.Policy = &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}
	}
	if r.IntN(2) == 0 {
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
		_, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		id, _, _ := strings.Cut(string(data), " ")
		s.mu.Lock()
		s.arrived[id]++
		s.mu.Unlock()
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
		s.mu.Lock()
		s.pokes++
		s.mu.Unlock()
	}
}

// mishap is one thing that goes wrong.
func (s *storm) mishap(r *rand.Rand) {
	switch r.IntN(12) {
	case 0, 1:
		late := upTo(r, 20*time.Second)
		s.network.Fault(venueAddr, []conntest.Fault{
			{Refuse: true}, {Hang: true}, {Drop: true}, {Late: late}, {Late: late, Deaf: true}, {Late: late, Ghost: true},
			{Err: &net.DNSError{Err: "no such host", Name: "feed.test"}}, {AcceptLate: late},
			{OnConn: func(p *conntest.Pipe) { p.Cut(conntest.ToClient, late.Nanoseconds()%2000) }},
		}[r.IntN(9)], conntest.Fault{})
	case 2, 3:
		late := upTo(r, 20*time.Second)
		s.Next([]conntest.Answer{
			conntest.Status(503, conntest.RetrySeconds(upTo(r, 5*time.Second))), conntest.Status(502, nil), conntest.Hang,
			conntest.HangUp, conntest.BadAccept, conntest.Late(late, s.Accept), conntest.Trickle(1+r.IntN(500), 100*time.Millisecond, s.Accept),
			s.AcceptWith(conntest.CloseWith(1012, "restart")), s.AcceptWith(conntest.Deaf), s.AcceptWith(func(context.Context, *websocket.Conn, *http.Request) {}),
		}[r.IntN(10)], s.Accept)
	case 4:
		s.Close()
		time.Sleep(upTo(r, 5*time.Second))
		s.Start()
	case 5:
		go s.Disconnect(websocket.StatusCode(1000+r.IntN(15)/13*12), "see you")
	default:
		for _, p := range s.network.Conns(venueAddr) {
			ail(r, p)
		}
	}
}

// ail is one thing that goes wrong with a connection.
func ail(r *rand.Rand, p *conntest.Pipe) {
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

// converge wants, now that nothing goes wrong any more, a session that stays.
func (s *storm) converge(ctx context.Context) {
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
	if s.seams[len(s.seams)-1] == s.ready[len(s.ready)-1] { // who pushes hears of the Close too
		s.ready = append(s.ready, 0)
	}
	require.Equal(s.t, s.ready[:len(s.ready)-1], s.seams, "one seam for each ready session that was lost")
	for id, fate := range s.fates {
		require.LessOrEqual(s.t, s.arrived[id], 1, "%s was sent twice", id)
		if fate == reconnect.Dropped {
			require.Zero(s.t, s.arrived[id], "%s was dropped, and yet it came", id)
		}
	}
	count := s.network.Count(venueAddr)
	require.Equal(s.t, 1, count.MaxDialling)
	require.LessOrEqual(s.t, count.MaxHeld, 1)
	require.Less(s.t, count.Dials, s.pokes+200, "no hot loop: there are some 60 at most")
}
