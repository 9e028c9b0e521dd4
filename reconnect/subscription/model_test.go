package subscription_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/subscription"
)

// For each seed there is a virtual minute in which a user adds, removes and replaces keys at random,
// the connection is lost and rotates, and the venue loses, delays, repeats, forges and refuses
// answers. Then there is peace. At rest the venue has exactly what is wanted. The policeman never
// fires, even where the delay of the network varies, as it does for each third seed. Some venues lose a third of
// the requests, and some are slow: they process one request after the other, or answer each after half a minute.
// Nothing comes for a key after its removal was answered. No goroutine is left. With REDIAL_LONG=1 there are 3,000
// seeds.
func TestHeldIsWantedInTheEnd(t *testing.T) {
	seeds := uint64(300)
	switch {
	case os.Getenv("REDIAL_LONG") != "":
		seeds = 3000
	case testing.Short():
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &model{r: rand.New(rand.NewPCG(seed, 0)), calls: map[string]int{}}
			if seed%3 == 2 {
				m.jitter = 500 * time.Millisecond
			}
			inBubble(t, m.venueOptions(seed), m.run)
		})
	}
}

// model is one seed.
type model struct {
	r       *rand.Rand // of the user and the trouble
	s       *scene
	inOrder bool           // the venue gives no ids
	work    time.Duration  // for each request, one after the other
	latency time.Duration  // of each answer, up to twice that
	losses  int            // requests of a hundred that the venue loses
	calls   map[string]int // how often each key was added, as the user believes
	jitter  time.Duration  // by how much the delay of what the client sends varies

	mu       sync.Mutex // guards what follows
	faults   *rand.Rand
	busy     time.Time // until when the venue works
	calm     bool
	seen     []seen
	intruder string // data that came for a key that nobody has
}

const modelKeys = 20

// seen is a request that the venue has got.
type seen struct {
	id     string
	client int
}

// venueOptions draws what the venue is like. One key is bad until there is peace.
func (m *model) venueOptions(seed uint64) *venueOptions {
	m.faults = rand.New(rand.NewPCG(seed, 1))
	o := &venueOptions{Most: 5, Per: time.Second, Fault: m.fault}
	o.Bad = func(k string) bool { return k == "K07" && !m.isCalm() }
	switch m.r.IntN(3) {
	case 0:
		o.Partial = true
	case 1:
		o.KeyByKey, m.inOrder = true, true
	}
	o.Strict = m.r.IntN(2) == 0
	switch m.r.IntN(6) {
	case 0:
		m.work = time.Duration(m.r.Int64N(int64(4 * time.Second)))
	case 1:
		if !m.inOrder {
			m.latency = time.Duration(m.r.Int64N(int64(30 * time.Second)))
		}
	case 2:
		m.losses = 30
	}
	return o
}

func (m *model) isCalm() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calm
}

// fault draws what the venue does wrong with a request.
func (m *model) fault(r venueRequest) (f venueFault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calm {
		return f
	}
	m.seen = append(m.seen, seen{r.ID, r.client})
	wait := time.Duration(m.faults.Int64N(int64(15 * time.Second)))
	kind := m.faults.IntN(20)
	switch {
	case m.faults.IntN(100) < m.losses:
		return venueFault{Ignored: true}
	case m.work > 0:
		m.busy = later(m.busy, time.Now()).Add(m.work)
		return venueFault{Slow: time.Until(m.busy)}
	case m.latency > 0:
		wait = m.latency + time.Duration(m.faults.Int64N(int64(m.latency)))
		return [...]venueFault{{Late: wait}, {Slow: wait}}[kind%2]
	case m.inOrder && (kind == 2 || kind == 3):
		return f // without ids nothing shows that an answer is late
	}
	switch kind {
	case 0:
		f.Ignored = true
	case 1:
		f.Lost = true
	case 2:
		f.Late = wait
	case 3:
		f.Slow = wait
	case 4:
		f.Err = "not now"
	case 5:
		f.Foreign = m.foreign(r.client)
	case 6:
		f.Twice = true
	}
	return f
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// foreign draws an id of another session, or returns "". To agree in the name of a request of this session that was
// not answered would be a lie that no client can see.
func (m *model) foreign(client int) string {
	others := slices.DeleteFunc(slices.Clone(m.seen), func(r seen) bool { return r.client == client })
	if len(others) == 0 {
		return ""
	}
	return others[m.faults.IntN(len(others))].id
}

// options draws what the client is like.
func (m *model) options() {
	s := m.s
	s.so.Batch, s.so.InFlight = 1+m.r.IntN(8), 1+m.r.IntN(4)
	s.so.Timeout = time.Second + time.Duration(m.r.Int64N(int64(5*time.Second)))
	if m.r.IntN(2) == 0 {
		s.so.Essential = func(k string) bool { return k < "K05" }
	}
	s.so.OnReject = func(r subscription.Rejection[string]) subscription.Decision {
		if r.Tries%7 == 6 {
			return subscription.DecisionRedial
		}
		return subscription.DecisionRetry
	}
	s.co.Pace = budget.Window{N: 5, Per: time.Second + m.jitter} // see Pace in the documentation of the package
	s.co.OpenTimeout = 8 * time.Second
	s.co.Rotate = reconnect.Rotation{Overlap: reconnect.Overlap(m.r.IntN(3)), Drain: 1 + time.Duration(m.r.Int64N(int64(5*time.Second)))}
	s.co.Layers = []*reconnect.Layer{{Receive: m.check}}
}

// check sees each message of a session in order, before the Set does.
func (m *model) check(msg reconnect.Message) bool {
	var v venueMessage
	if json.Unmarshal(msg.Data, &v) != nil || v.Answer || len(v.Keys) == 0 {
		return false
	}
	if m.s.set.State(v.Keys[0]) == subscription.StateNone {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.intruder = v.Keys[0]
	}
	return false
}

func (m *model) run(t *testing.T, s *scene) {
	m.s = s
	m.options()
	t.Logf("in order %v, work %v, latency %v, losses %d", m.inOrder, m.work, m.latency, m.losses)
	if m.r.IntN(2) == 0 {
		s.openURL(5)
	} else {
		s.open()
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		m.step()
		time.Sleep(time.Duration(m.r.Int64N(int64(time.Second))))
	}
	m.mu.Lock()
	m.calm = true
	m.mu.Unlock()
	time.Sleep(5 * time.Minute) // what is late has come

	// At rest held is wanted, at the venue.
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for err := s.set.Synced(ctx); err != nil; err = s.set.Synced(ctx) {
		require.NoError(t, ctx.Err(), err)
		time.Sleep(time.Second)
	}
	time.Sleep(20 * time.Second)
	wanted := []string{}
	for k, n := range m.calls {
		if n > 0 {
			wanted = append(wanted, k)
		}
	}
	s.synced(wanted...)
	require.Len(t, s.set.Snapshot(), len(wanted))
	require.Zero(t, s.venue.Stats().Policed)
	m.mu.Lock()
	require.Empty(t, m.intruder)
	m.mu.Unlock()
	requests := s.venue.Stats().Requests
	time.Sleep(time.Hour)
	require.Equal(t, requests, s.venue.Stats().Requests, "at rest nothing is sent")
}

// step is one thing that happens.
func (m *model) step() {
	s := m.s
	if m.jitter > 0 {
		for _, p := range s.net.Conns(addr) {
			p.Latency(conntest.ToServer, time.Duration(m.r.Int64N(int64(m.jitter))))
		}
	}
	keys := make([]string, 1+m.r.IntN(6))
	for i := range keys {
		keys[i] = fmt.Sprintf("K%02d", m.r.IntN(modelKeys))
	}
	switch m.r.IntN(12) {
	case 0, 1, 2, 3:
		s.set.Add(keys...)
		for _, k := range keys {
			m.calls[k]++
		}
	case 4, 5, 6:
		s.set.Remove(keys...)
		for _, k := range keys {
			m.calls[k] = max(m.calls[k]-1, 0)
		}
	case 7:
		s.set.Replace(keys...)
		for k := range m.calls {
			if !slices.Contains(keys, k) {
				m.calls[k] = 0
			}
		}
		for _, k := range keys {
			m.calls[k] = max(m.calls[k], 1)
		}
	case 8:
		if pipes := s.net.Conns(addr); len(pipes) > 0 {
			pipes[m.r.IntN(len(pipes))].Reset()
		}
	case 9, 10:
		s.conn.Rotate(s.conn.Status().Session, reconnect.Advice{})
	default:
		s.venue.End(keys[0], "ended")
	}
	for i := range modelKeys {
		s.venue.Publish(fmt.Sprintf("K%02d", i), "x")
	}
	if m.r.IntN(3) == 0 {
		synctest.Wait()
	}
}
