package run_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// Random faults and random use, of all files at once: what is read, and Write.

// Promises 1, 3, 5, 6, 7, 8 and 11, under random faults and random use. REDIAL_SEEDS sets the
// number of seeds; -run 'Storm/^17$' runs one again, though the scheduler does not repeat
// itself.
func TestAStormIsSurvived(t *testing.T) {
	scene.EachSeed(t, 100, func(t *testing.T, seed uint64) {
		w := &stressWS{stress: newStress(seed)}
		scene.WithWSServer(t, w.serve, w.run)
	})
}

// Promises 1, 3, 5, 6, 7, 8 and 11 over framed TCP: no message is made of what two connections
// brought, in either direction.
func TestAStormIsSurvivedOverFramedTCP(t *testing.T) {
	scene.EachSeed(t, 60, func(t *testing.T, seed uint64) {
		w := &stressFramed{stress: newStress(seed), framing: framings[seed%uint64(len(framings))]}
		scene.WithFramedServer(t, w.framing.framer, w.run)
	})
}

// stress is one seed: a virtual minute of random faults and random use, and a record of what
// was read and written. Its server is a stressWS or a stressFramed.
type stress struct {
	t       *testing.T
	seed    uint64
	o       reconnect.Options
	conn    *reconnect.Conn
	network *conntest.Network
	addr    string

	push   bool // or pull
	start  time.Time
	length time.Duration // for which things go wrong
	users  sync.WaitGroup

	mu      sync.Mutex      // guards what follows
	started []uint64        // sessions
	ready   []uint64        // of those
	seams   []uint64        // sessions whose end the reader saw
	session uint64          // of the last message
	next    int             // number of the next message of that session
	heard   time.Time       // when the last message came
	probes  map[uint64]int  // of each session
	logins  map[uint64]bool // sessions that the server knows of
	sent    map[string]int  // sizes of what was given to Write
	begun   map[string]bool // messages of which the server saw a part
	arrived map[string]int  // whole
	fates   map[string]reconnect.Fate
	dials   int
}

// stream returns the random numbers of one actor.
func (s *stress) stream(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(s.seed, actor)) }

// drive runs the users among faults. If the Conn is not to be closed early, it then checks that
// the Conn recovers. In the end it closes the Conn.
func (s *stress) drive(t *testing.T, n *conntest.Network, addr string, d reconnect.Dialer, f faults) {
	s.t, s.network, s.addr, s.start = t, n, addr, time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	// Open the Conn.
	var err error
	s.conn, err = reconnect.New(d, &s.o)
	require.NoError(t, err)
	defer func() { // also if the test fails
		cancel()
		s.conn.Close()
		s.users.Wait()
	}()
	// Start the users.
	for actor := range uint64(3) {
		s.users.Go(func() { s.write(ctx, s.stream(10+actor)) })
	}
	s.users.Go(func() { s.read(s.stream(20)) })
	s.users.Go(func() { s.kickAndRedial(s.stream(30)) })

	// Cause faults, until their time is over.
	r := s.stream(40)
	for s.faulting() {
		time.Sleep(scene.UpTo(r, 3*time.Second))
		f.Inject(r)
	}
	// Without faults the Conn recovers.
	if !s.early() {
		f.Stop()
		s.requireDeathNoticed()
		s.requireRecovery(ctx)
	}
	// End it all, and check what was recorded.
	cancel()
	s.close()
	s.users.Wait()
	s.check()
}

func (s *stress) now() time.Duration { return time.Since(s.start) }

func (s *stress) faulting() bool { return s.now() < s.length }

// early reports whether the Conn is to be closed in the middle of the faults.
func (s *stress) early() bool { return s.length < time.Minute }

// close requires that Close takes no time, unless a dial ignores its context.
func (s *stress) close() {
	closing := s.now()
	scene.CloseAndWait(s.conn)
	if s.early() {
		require.Less(s.t, s.now()-closing, 20*time.Second)
	} else {
		require.Equal(s.t, closing, s.now())
	}
	require.Zero(s.t, s.network.Count("").Open)
}

// options draws other options for each seed.
func (s *stress) options() {
	r := s.stream(0)
	s.length = time.Minute
	if r.IntN(4) == 0 {
		s.length = scene.UpTo(r, time.Minute)
	}
	o := &s.o
	o.OnSession, o.OpenTimeout = s.login, 5*time.Second
	o.WhenDown = reconnect.WhenDown(r.IntN(2))
	o.Liveness.Limit = 3 * (time.Second + scene.UpTo(r, 10*time.Second))
	o.Run.Rand = s.stream(1)
	o.Run.Trace = &reconnect.Trace{
		DialStart:    func(reconnect.DialStart) { s.noteDial() },
		SessionStart: func(n *reconnect.Session) { s.note(&s.started, n.Number) },
		SessionReady: func(n *reconnect.Session) { s.note(&s.ready, n.Number) },
		SessionDone:  s.judge,
		ProbeStart:   s.probe,
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
}

func (s *stress) note(list *[]uint64, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, n)
}

// noteDial finds a hot loop: there are about 60 dials in a minute at most.
func (s *stress) noteDial() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dials++; s.dials == 300 {
		s.t.Error("a hot loop")
		go s.conn.Close()
	}
}

func (s *stress) probe(p reconnect.ProbeStart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes[p.Session]++
}

// judge finds a session that ended as silent without two probes, or though messages came. Only
// with OnMessage is it known when a message came.
func (s *stress) judge(end reconnect.SessionDone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(end.Cause, reconnect.ErrSilent) {
		return
	}
	if s.probes[end.Session] < 2 {
		s.t.Errorf("session %d ended after %d probes", end.Session, s.probes[end.Session])
	}
	if silence := time.Since(s.heard); s.push && s.session == end.Session && silence < s.o.Liveness.Limit {
		s.t.Errorf("session %d ended after a silence of %v", end.Session, silence)
	}
}

func (s *stress) login(_ context.Context, o *reconnect.Opening) error {
	if err := o.Write(scene.Text(fmt.Sprint("login ", o.Session))); err != nil {
		return err
	}
	m, err := o.Read()
	if err == nil && string(m.Data) != fmt.Sprint("welcome ", o.Session) {
		s.t.Errorf("session %d: %q is not the answer to a login", o.Session, m.Data)
	}
	return err
}

// write writes small and large messages, often with little time.
func (s *stress) write(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(scene.UpTo(r, 2*time.Second))
		size := r.IntN(500)
		if r.IntN(10) == 0 {
			size = 100_000 // more than the window
		}
		impatient, cancel := context.WithTimeout(ctx, scene.UpTo(r, 5*time.Second))
		s.send(impatient, strconv.FormatUint(r.Uint64(), 36), size)
		cancel()
	}
}

// send writes a message, and records its fate.
func (s *stress) send(ctx context.Context, id string, size int) {
	s.mu.Lock()
	s.sent[id] = size
	s.mu.Unlock()
	err := s.conn.Write(ctx, scene.Text(id+" "+strings.Repeat("x", size)))
	fate := reconnect.FateWritten
	if w, ok := errors.AsType[*reconnect.WriteError](err); ok {
		fate = w.Fate
	} else if err != nil {
		s.t.Errorf("write: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates[id] = fate
}

// read reads, if there is no OnMessage, with little time, and sometimes pauses.
func (s *stress) read(r *rand.Rand) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), scene.UpTo(r, 3*time.Second))
		m, err := s.conn.Read(ctx, nil)
		cancel()
		seam, lost := errors.AsType[*reconnect.Seam](err)
		switch {
		case err == nil:
			s.message(ctx, m)
		case lost:
			s.seam(ctx, seam)
		case errors.Is(err, context.DeadlineExceeded):
			time.Sleep(scene.UpTo(r, 100*time.Millisecond))
		default: // closed, or push
			return
		}
		if r.IntN(50) == 0 && s.now() < time.Minute {
			time.Sleep(scene.UpTo(r, 10*time.Second))
		}
	}
}

// message checks the stream: the messages of a session are counted from 0, each is whole and
// meant for that session, and a seam comes before the next session.
func (s *stress) message(_ context.Context, m reconnect.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Session != s.session {
		if len(s.seams) > 0 && m.Session <= s.seams[len(s.seams)-1] || s.next > 0 {
			s.t.Errorf("a message of session %d after %d of session %d and the seams %v", m.Session, s.next, s.session, s.seams)
		}
		s.session, s.next = m.Session, 0
	}
	if want := number(m.Session, s.next); string(m.Data) != want {
		s.t.Errorf("session %d: message %.20q of %d bytes, want %.20q of %d", m.Session, m.Data, len(m.Data), want, len(want))
	}
	s.next++
	s.heard = time.Now()
}

func (s *stress) seam(_ context.Context, seam *reconnect.Seam) {
	s.note(&s.seams, seam.Session)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = 0
	if seam.Lost != 1 || seam.Dropped != 0 || seam.Session < s.session {
		s.t.Errorf("after a message of session %d the seam %+v", s.session, seam)
	}
}

// kickAndRedial calls Kick and Redial now and then.
func (s *stress) kickAndRedial(r *rand.Rand) {
	for {
		time.Sleep(scene.UpTo(r, 4*time.Second))
		if s.now() >= time.Minute {
			return
		}
		if r.IntN(2) == 0 {
			s.conn.Kick()
		} else {
			s.conn.Redial(s.conn.Status().Session, scene.ErrLost)
		}
	}
}

// requireDeathNoticed stalls a ready connection and requires that the Conn notices. It stalls
// both directions, because room for a large message is a sign of life. It resets a connection
// that is not ready, because OnSession has a limit of its own and a dial that hangs is kept.
func (s *stress) requireDeathNoticed() {
	ready := s.conn.State() == reconnect.StateReady
	if !ready {
		s.network.ResetAll(s.addr)
	}
	dead := s.network.Conns(s.addr)
	for _, p := range dead {
		p.Stall(conntest.ToClient)
		p.Stall(conntest.ToServer)
	}
	time.Sleep(10*time.Second + 2*s.o.Liveness.Limit) // 10 s for a reader that pauses
	for _, p := range dead {
		require.False(s.t, ready && p.Live(), "%v has been silent for long enough", p)
	}
}

// requireRecovery requires, after the last fault, a session that stays.
func (s *stress) requireRecovery(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	require.NoError(s.t, s.conn.Await(ctx, reconnect.StateReady), "not ready in time: %+v", s.conn.Status())
	dials, session := len(s.network.Dials(s.addr)), s.conn.Status().Session
	time.Sleep(time.Minute)
	require.Equal(s.t, session, s.conn.Status().Session)
	require.Equal(s.t, dials, len(s.network.Dials(s.addr)))
	s.send(s.t.Context(), "last", 10)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, reconnect.FateWritten, s.fates["last"])
	require.Equal(s.t, 1, s.arrived["last"])
	require.Equal(s.t, session, s.session, "the session of the last message")
}

// check runs when all is over.
func (s *stress) check() {
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
		if fate == reconnect.FateDropped {
			require.False(s.t, s.begun[id], "%s was dropped, and yet it came", id)
		}
	}
	count := s.network.Count(s.addr)
	require.LessOrEqual(s.t, count.MaxDialing, 2)
	require.LessOrEqual(s.t, count.MaxHeld, 2)
}

func newStress(seed uint64) *stress {
	s := &stress{
		seed: seed, ready: []uint64{}, seams: []uint64{}, probes: make(map[uint64]int), logins: make(map[uint64]bool),
		sent: make(map[string]int), begun: make(map[string]bool), arrived: make(map[string]int), fates: make(map[string]reconnect.Fate),
	}
	s.options()
	return s
}

// settling is the longest time for which the default policy, the answers of the server and the
// limits can keep a client away: a limit on connecting, a Retry-After, and the cap after
// overload.
const settling = time.Minute + 5*time.Second + 5*time.Minute
