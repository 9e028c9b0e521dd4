package call_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/call"
)

// Random histories, of all files at once: how each question ends.

// For each seed there is half a virtual minute of questions, answers in any order or never, losses,
// rotations, cancellations and an end. Each Do ends once: with its own answer, or with a fate that
// is true. With even seeds the ids are used again; with odd ones the server also answers twice, and
// by the wrong session. REDIAL_SEEDS sets the number of seeds; -run 'Once/^17$' runs one again.
func TestEachQuestionEndsOnceAndTruly(t *testing.T) {
	seeds := 300
	if info, _ := debug.ReadBuildInfo(); testing.Short() || slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		seeds /= 5
	}
	if n, err := strconv.Atoi(os.Getenv("REDIAL_SEEDS")); err == nil {
		seeds = n
	}
	var total call.Stats
	for seed := range uint64(seeds) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newModel(t, seed).run()
				total.Answered, total.Lost, total.GivenUp = total.Answered+s.Answered, total.Lost+s.Lost, total.GivenUp+s.GivenUp
				total.Repeated, total.Late, total.Refused = total.Repeated+s.Repeated, total.Late+s.Late, total.Refused+s.Refused
			})
		})
	}
	for _, n := range []uint64{total.Answered, total.Lost, total.GivenUp, total.Repeated, total.Late, total.Refused} {
		require.NotZero(t, n, "%+v: the histories are not varied", total)
	}
}

// model is one seed.
type model struct {
	t      *testing.T
	seed   uint64
	reuse  bool // ids are used again
	client *call.Client[string]
	conn   *reconnect.Conn
	o      reconnect.Options
	serves sync.WaitGroup

	mu       sync.Mutex // guards what follows
	peers    []*peer
	received map[string][]int // the connections that have brought each question
	lostAt   map[uint64]time.Time
	unsent   []string // questions that must never come
	nonces   int
}

// peer is the server's end of a connection.
type peer struct {
	*conntest.Fake
	number int
	r      *rand.Rand
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, seed: seed, reuse: seed%2 == 0, received: map[string][]int{}, lostAt: map[uint64]time.Time{}}
	r := m.stream(0)
	o := &call.Options[string]{ID: func(m reconnect.Message) (string, bool) {
		id, _, ok := strings.Cut(string(m.Data), " ")
		return id, ok
	}}
	if !m.reuse && r.IntN(2) == 0 {
		o.InFlight = 2 + r.IntN(5)
	}
	var err error
	m.client, err = call.New(o)
	require.NoError(t, err)
	m.o.WhenDown = []reconnect.WhenDown{reconnect.WhenDownFail, reconnect.WhenDownWait}[r.IntN(2)]
	m.o.Rotate = reconnect.Rotation{Overlap: reconnect.Overlap(r.IntN(3)), Drain: 1 + upTo(r, 3*time.Second)}
	m.o.Run.Rand, m.o.Run.Policy = m.stream(1), &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}
	m.o.CloseTimeout = 200 * time.Millisecond
	m.o.Layers = []*reconnect.Layer{{Lost: func(session uint64, _ error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lostAt[session] = time.Now()
	}}, m.client.Layer()}
	if r.IntN(2) == 0 {
		m.o.OnMessage = func(_ context.Context, got reconnect.Message) { t.Errorf("%q reached the reader", got.Data) }
	}
	return m
}

func (m *model) stream(actor uint64) *rand.Rand { return rand.New(rand.NewPCG(m.seed, actor)) }

// upTo draws from [0, d).
func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// run plays the history, and checks that nothing is left.
func (m *model) run() call.Stats {
	var err error
	m.conn, err = reconnect.New(m, &m.o)
	require.NoError(m.t, err)
	ctx, cancel := context.WithTimeout(m.t.Context(), 30*time.Second)
	defer cancel()
	var users sync.WaitGroup
	for i := range uint64(6) {
		users.Go(func() { m.ask(ctx, m.stream(10+i)) })
	}
	users.Go(func() { m.trouble(ctx, m.stream(2)) })
	r := m.stream(3)
	if r.IntN(2) == 0 { // the end comes in the middle
		time.Sleep(upTo(r, 30*time.Second))
	} else {
		users.Wait()
		require.Zero(m.t, m.client.Stats().InFlight, "at rest")
	}
	m.conn.Close()
	<-m.conn.Done()
	cancel()
	users.Wait()
	m.mu.Lock()
	for _, p := range m.peers {
		_ = p.CloseNow()
	}
	m.mu.Unlock()
	m.serves.Wait()
	for _, question := range m.unsent {
		require.Empty(m.t, m.received[question], "%q came", question)
	}
	s := m.client.Stats()
	require.Zero(m.t, s.InFlight)
	require.Zero(m.t, s.Reserved)
	require.Equal(m.t, s.Asked, s.Answered+s.Lost+s.GivenUp, "%+v", s)
	return s
}

// Dial is the server's door. It takes its time, and sometimes refuses.
func (m *model) Dial(ctx context.Context) (conn.Conn, error) {
	m.mu.Lock()
	r := m.stream(1000 + uint64(len(m.peers)))
	m.mu.Unlock()
	select {
	case <-time.After(upTo(r, 300*time.Millisecond)):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ours, theirs := conntest.Pair(nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &peer{theirs, len(m.peers), r}
	m.peers = append(m.peers, p)
	if r.IntN(5) == 0 {
		return nil, errGone
	}
	m.serves.Go(func() { m.serve(p) })
	return ours.Conn(), nil
}

// serve answers the questions of a connection in any order, or does not, or does what it should not.
func (m *model) serve(p *peer) {
	for {
		got, err := p.Read(nil)
		if err != nil {
			return
		}
		question := string(got.Data)
		m.mu.Lock()
		m.received[question] = append(m.received[question], p.number)
		by, times := p, 1
		switch what := p.r.IntN(20); {
		case what == 0:
			times = 0
		case what == 1:
			time.AfterFunc(upTo(p.r, time.Second), func() { _ = p.CloseNow() })
		case what == 2 && !m.reuse:
			times = 2
		case what == 3 && !m.reuse:
			by = m.peers[p.r.IntN(len(m.peers))]
		}
		delay := upTo(p.r, time.Second)
		m.mu.Unlock()
		time.AfterFunc(delay, func() {
			for range times {
				_ = by.Write(text(question + " answered"))
			}
		})
	}
}

// trouble does one thing after the other to the connection, from both ends.
func (m *model) trouble(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(upTo(r, 3*time.Second))
		session := m.conn.Status().Session
		switch r.IntN(5) {
		case 0:
			m.mu.Lock()
			if len(m.peers) > 0 {
				_ = m.peers[len(m.peers)-1-r.IntN(min(2, len(m.peers)))].CloseNow()
			}
			m.mu.Unlock()
		case 1:
			m.conn.Redial(session, errGone)
		case 2:
			m.conn.Kick()
		default:
			m.conn.Rotate(session, reconnect.Advice{})
		}
	}
}

// ask asks one question after the other, and checks how each ends.
func (m *model) ask(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(upTo(r, 400*time.Millisecond))
		m.mu.Lock()
		m.nonces++
		nonce := m.nonces
		m.mu.Unlock()
		id := strconv.Itoa(nonce)
		if m.reuse {
			id = strconv.Itoa(r.IntN(20))
		}
		q := call.Request[string]{ID: id, Message: text(fmt.Sprintf("%s %d", id, nonce)), Repeatable: r.IntN(3) == 0}
		if !q.Repeatable && r.IntN(8) == 0 {
			q.Session = m.conn.Status().Session
		}
		own, cancel := context.WithTimeout(context.Background(), 1+upTo(r, 4*time.Second))
		got, err := m.client.Do(own, q)
		m.check(own, q, got, err)
		cancel()
	}
}

// check asserts that how a question has ended is true.
func (m *model) check(ctx context.Context, q call.Request[string], got reconnect.Message, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	question := string(q.Message.Data)
	received := m.received[question]
	if len(received) > 1 && !q.Repeatable {
		m.t.Errorf("%q was sent %d times", question, len(received))
	}
	deadline, _ := ctx.Deadline()
	if time.Now().After(deadline) {
		m.t.Errorf("%q: %v after its context", question, time.Since(deadline))
	}
	lost, isLost := errors.AsType[*call.LostError](err)
	switch {
	case err == nil:
		if string(got.Data) != question+" answered" || len(received) == 0 {
			m.t.Errorf("%q got %q", question, got.Data)
		}
		return
	case isLost && q.Repeatable:
		m.t.Errorf("%q: %v", question, err)
	case isLost:
		at, ended := m.lostAt[lost.Session]
		if lost.Fate == reconnect.FateUnknown && ended && !time.Now().Equal(at) {
			m.t.Errorf("%q: told %v after the end of its session", question, time.Since(at))
		}
	case errors.Is(err, context.DeadlineExceeded):
		if !time.Now().Equal(deadline) {
			m.t.Errorf("%q: %v", question, err)
		}
	case errors.Is(err, call.ErrIDInUse) && m.reuse, errors.Is(err, call.ErrTooMany) && !m.reuse, errors.Is(err, net.ErrClosed):
	default:
		m.t.Errorf("%q: %v", question, err)
	}
	if call.Unsent(err) {
		m.unsent = append(m.unsent, question)
	}
}
