package rotate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// For each seed there is a virtual minute of rotations, losses and failures at random
// steps, with advice, kicks, checks and an end. The server gives all its connections the same
// numbers. Nothing is missing where two sessions have overlapped; each session is read in
// order; there is one seam after each; and there are never three connections.
func TestRotationsLoseNothing(t *testing.T) {
	scene.EachSeed(t, 300, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { newRotations(t, seed).run() })
	})
}

// rotations is one seed.
type rotations struct {
	t    *testing.T
	o    reconnect.Options
	conn *reconnect.Conn
	seed uint64

	mu      sync.Mutex // guards what follows
	peers   []*rotatingPeer
	next    int       // the number that the server gives next
	calm    bool      // nothing fails any more
	watched time.Time // from then on each rotation must succeed; zero: it need not
	rotated []uint64  // the sessions that were replaced since then

	// What the reader has seen.
	last  map[uint64]int // the last number of each session
	first map[uint64]int
	seams map[uint64]*reconnect.Seam
}

func newRotations(t *testing.T, seed uint64) *rotations {
	w := &rotations{t: t, seed: seed, last: map[uint64]int{}, first: map[uint64]int{}, seams: map[uint64]*reconnect.Seam{}}
	r := w.stream(0)
	o := &w.o
	o.OnSession, o.OpenTimeout = w.open, 2*time.Second
	o.Run.Rand, o.Run.Policy = w.stream(1), &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}
	o.Run.Trace = &reconnect.Trace{RotateDone: w.replaced}
	o.Rotate = reconnect.Rotation{Overlap: reconnect.Overlap(r.IntN(3)), Drain: 1 + scene.UpTo(r, 5*time.Second)}
	if r.IntN(2) == 0 {
		o.Rotate.After = time.Second + scene.UpTo(r, 10*time.Second)
	}
	if o.Rotate.Overlap != reconnect.OverlapMix && r.IntN(4) == 0 {
		o.Run.OneConnection, o.Rotate.Overlap = true, reconnect.OverlapBreakFirst
	}
	slow := w.stream(2)
	if r.IntN(2) == 0 {
		o.OnMessage = func(_ context.Context, m reconnect.Message) { w.read(slow, m) }
		o.OnSeam = func(_ context.Context, s *reconnect.Seam) { w.cross(s) }
	} else {
		o.Inbox.Messages = 1 + r.IntN(64)
	}
	return w
}

func (w *rotations) stream(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, actor)) }

func (w *rotations) run() {
	// Open the Conn, with a server that gives numbers and makes trouble.
	var err error
	w.conn, err = reconnect.New(w, &w.o)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	var actors, reader sync.WaitGroup
	actors.Go(func() { w.feed(ctx) })
	actors.Go(func() { w.trouble(ctx, w.stream(3)) })
	if w.o.OnMessage == nil {
		reader.Go(func() { w.pull(w.stream(2)) })
	}
	// Let it run, let it recover and rotate once more, or not, and end it politely, or not.
	r := w.stream(4)
	time.Sleep(scene.UpTo(r, time.Minute))
	calm := r.IntN(3) > 0
	if calm {
		w.set(func() { w.calm = true })
		time.Sleep(10 * time.Second)
		require.NoError(w.t, w.conn.Await(ctx, reconnect.StateReady))
		w.set(func() { w.watched = time.Now() })
		for range 2 { // the first does nothing if a rotation is under way
			w.conn.Rotate(w.conn.Status().Session, reconnect.Advice{})
			time.Sleep(10 * time.Second)
		}
		w.set(func() { w.watched = time.Time{} })
	}
	if r.IntN(2) == 0 {
		_ = w.conn.Shutdown(ctx)
	}
	scene.CloseAndWait(w.conn)
	cancel()
	actors.Wait()
	reader.Wait()
	// Nothing is left, and the counts agree.
	require.Equal(w.t, calm, len(w.rotated) > 0)
	for _, session := range w.rotated {
		require.Contains(w.t, w.seams, session)
		require.True(w.t, w.seams[session].Planned)
		require.Equal(w.t, w.o.Rotate.Overlap != reconnect.OverlapBreakFirst, w.seams[session].Overlapped)
	}
	require.Zero(w.t, w.live())
	s := w.conn.Stats()
	require.GreaterOrEqual(w.t, s.Sessions, s.Rotations)
}

// live returns how many connections are open.
func (w *rotations) live() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.peers {
		if !p.server.Closed() {
			n++
		}
	}
	return n
}

// Dial is the server's door. It takes its time, and often refuses.
func (w *rotations) Dial(ctx context.Context) (conn.Conn, error) {
	w.mu.Lock()
	r := rand.New(rand.NewPCG(w.seed, 1000+uint64(len(w.peers))))
	w.mu.Unlock()
	select {
	case <-time.After(scene.UpTo(r, 200*time.Millisecond)):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.IntN(4) == 0 && !w.isCalm() {
		return nil, scene.ErrLost
	}
	fake := conntest.NewFake(&conntest.FakeOptions{Pings: true, Transport: true})
	peer := &rotatingPeer{server: fake, rotatingConn: fake.Conn().(rotatingConn)}
	w.mu.Lock()
	w.peers = append(w.peers, peer)
	w.mu.Unlock()
	limit := 2
	if w.o.Run.OneConnection {
		limit = 1
	}
	if n := w.live(); n > limit {
		w.t.Errorf("%d connections at %v", n, time.Now())
	}
	return peer, nil
}

// rotatingPeer is a connection that announces when it waits for a number, as all connections of
// package conn do. Only then is it known that a session which is to end has been read so far.
type rotatingPeer struct {
	rotatingConn
	server *conntest.Fake // its other end
	sent   atomic.Int64
	read   int64
	wait   func() // may be nil
}

// rotatingConn is what the connection of a Fake with all its options is.
type rotatingConn interface {
	conn.Conn
	conn.Pinger
	conn.Transport
}

func (p *rotatingPeer) BeforeBlock(f func()) bool { p.wait = f; return true }

func (p *rotatingPeer) Read(buf []byte) (conn.Message, error) {
	return p.ReadBuffer(func(int) []byte { return buf })
}

func (p *rotatingPeer) ReadBuffer(buffer func(int) []byte) (conn.Message, error) {
	if p.wait != nil && p.read == p.sent.Load() {
		p.wait()
	}
	m, err := p.rotatingConn.ReadBuffer(buffer)
	p.read++
	return m, err
}

// give sends a number.
func (p *rotatingPeer) give(n int) {
	p.sent.Add(1)
	p.server.Deliver(scene.Text(strconv.Itoa(n)))
}

// open takes its time, reads some numbers and passes them on, and sometimes fails.
func (w *rotations) open(ctx context.Context, o *reconnect.Opening) error {
	r := rand.New(rand.NewPCG(w.seed, 5000+o.Session))
	for range r.IntN(4) {
		m, err := o.Read()
		if err != nil {
			return err
		}
		if err := o.Deliver(m); err != nil {
			return err
		}
	}
	select {
	case <-time.After(scene.UpTo(r, 300*time.Millisecond)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.IntN(8) == 0 && !w.isCalm() {
		return errors.New("login refused")
	}
	return nil
}

func (w *rotations) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *rotations) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

// replaced is Trace.RotateDone.
func (w *rotations) replaced(d reconnect.RotateDone) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched.IsZero() || time.Since(w.watched) < d.Took {
		return
	}
	if d.Err != nil {
		w.t.Errorf("session %d was not replaced: %v", d.Session, d.Err)
	}
	w.rotated = append(w.rotated, d.Session)
}

// feed gives each open connection the next number, every 20 ms.
func (w *rotations) feed(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		w.mu.Lock()
		w.next++
		for _, p := range w.peers {
			p.give(w.next)
		}
		w.mu.Unlock()
	}
}

// trouble does one thing after the other to the connection, from both ends.
func (w *rotations) trouble(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(scene.UpTo(r, 2*time.Second))
		w.mu.Lock()
		peers := w.peers
		w.mu.Unlock()
		if w.isCalm() || len(peers) == 0 {
			continue
		}
		session := w.conn.Status().Session
		switch peer := peers[len(peers)-1-r.IntN(min(2, len(peers)))]; r.IntN(10) {
		case 0:
			peer.server.Fail(scene.ErrLost)
		case 1:
			peer.server.Fail(&conn.CloseError{Code: 1012, Reason: "redial/1 wait=100ms spread=1s hint=b"})
		case 2:
			w.conn.Kick()
		case 3:
			w.conn.Check()
		case 4:
			w.conn.Redial(session, nil)
		case 5:
			w.conn.Rotate(session, reconnect.Advice{By: time.Now().Add(scene.UpTo(r, 5*time.Second)), Hint: "c"})
		case 6:
			w.conn.Rotate(session, reconnect.Advice{Wait: scene.UpTo(r, time.Second)})
		default:
			w.conn.Rotate(session, reconnect.Advice{})
		}
	}
}

// pull reads until the Conn has ended.
func (w *rotations) pull(r *rand.Rand) {
	for m, err := range w.conn.Messages(context.Background()) {
		if seam, ok := errors.AsType[*reconnect.Seam](err); ok {
			w.cross(seam)
		} else if err == nil {
			w.read(r, m)
		}
	}
}

// read is the reader: it notes a number, and sometimes takes its time.
func (w *rotations) read(r *rand.Rand, m reconnect.Message) {
	n, err := strconv.Atoi(string(m.Data))
	require.NoError(w.t, err)
	if last, ok := w.last[m.Session]; ok && n != last+1 {
		w.t.Errorf("session %d: %d after %d", m.Session, n, last)
	} else if !ok {
		w.first[m.Session] = n
		w.joins(m.Session, n)
	}
	if s := w.seams[m.Session]; s != nil {
		w.t.Errorf("session %d: %d after its seam", m.Session, n)
	}
	w.last[m.Session] = n
	if r.IntN(200) == 0 && !w.isCalm() {
		time.Sleep(scene.UpTo(r, 3*time.Second))
	}
}

// joins checks that the first number of a session leaves no gap after the one before, if the two
// have overlapped.
func (w *rotations) joins(session uint64, n int) {
	for before := session - 1; before > 0; before-- {
		s := w.seams[before]
		if s == nil && w.o.Rotate.Overlap != reconnect.OverlapMix && w.last[before] != 0 {
			w.t.Errorf("session %d begins before the seam of %d", session, before)
		}
		if s != nil && s.Overlapped && n > w.last[before]+1 {
			w.t.Errorf("session %d begins with %d, and %d ended with %d", session, n, before, w.last[before])
		}
		if s != nil || w.last[before] != 0 {
			return
		}
	}
}

// cross notes a seam.
func (w *rotations) cross(s *reconnect.Seam) {
	if w.seams[s.Session] != nil {
		w.t.Errorf("session %d: two seams", s.Session)
	}
	w.seams[s.Session] = s
	if s.Lost != 1 {
		w.t.Error(fmt.Sprint("seam: ", s))
	}
	if w.o.Rotate.Overlap == reconnect.OverlapMix && s.Overlapped { // the next one began before
		for next := s.Session + 1; next <= s.Session+50; next++ {
			if first, ok := w.first[next]; ok && w.last[s.Session] != 0 {
				if first > w.last[s.Session]+1 {
					w.t.Errorf("session %d begins with %d, and %d ended with %d", next, first, s.Session, w.last[s.Session])
				}
				return
			}
		}
	}
}
