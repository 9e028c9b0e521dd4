package subscription_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/subscription"
)

// slowVenue serves any number of clients, but takes its time. Its requests are plain text: an id and the keys. So are
// its answers: an id, and for a refusal the error and the refused keys, behind bars.
type slowVenue struct {
	perKey  time.Duration                    // of work, one request after the other
	queue   int                              // requests that may wait for the work, the others are dropped; zero means no limit
	latency func(r *rand.Rand) time.Duration // of an answer, beside the work
	loses   func(r *rand.Rand, now time.Time, keys []string) bool
	refuses func(now time.Time, key string) error // why a request with the key is refused, or nil
	names   bool                                  // agrees to the other keys of a request, and names the refused ones

	mu       sync.Mutex // guards what follows
	random   *rand.Rand
	waiting  int
	busy     time.Time // until when the venue works
	requests int
	dials    int
	last     map[string]time.Time // when a request for this key alone, or for others too if it names keys, was refused last
}

// slowConn is a connection to a slowVenue.
type slowConn struct {
	venue   *slowVenue
	answers chan string
	closed  chan struct{}
	once    sync.Once
}

func (v *slowVenue) Dial(context.Context) (conn.Conn, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dials++
	return &slowConn{venue: v, answers: make(chan string, 4096), closed: make(chan struct{})}, nil
}

func (c *slowConn) Read(buf []byte) (conn.Message, error) {
	select {
	case id := <-c.answers:
		return conn.Message{Type: conn.Text, Data: append(buf[:0], id...)}, nil
	case <-c.closed:
		return conn.Message{}, errors.New("closed")
	}
}

func (c *slowConn) Write(m conn.Message) error {
	words := strings.Fields(string(m.Data))
	v := c.venue
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests++
	if v.queue > 0 && v.waiting >= v.queue || v.loses != nil && v.loses(v.random, time.Now(), words[1:]) {
		return nil
	}
	v.waiting++
	v.busy = later(v.busy, time.Now()).Add(time.Duration(len(words)-1) * v.perKey)
	time.AfterFunc(time.Until(v.busy), func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.waiting--
		latency := time.Duration(0)
		if v.latency != nil {
			latency = v.latency(v.random)
		}
		reply := words[0] + v.refusal(words[1:])
		time.AfterFunc(latency, func() { c.answers <- reply }) // there is room
	})
	return nil
}

// refusal returns the part of an answer that refuses keys, or "". The caller holds mu.
func (v *slowVenue) refusal(keys []string) string {
	var why error
	var refused []string
	for _, k := range keys {
		if v.refuses == nil {
			break
		}
		if err := v.refuses(time.Now(), k); err != nil {
			why, refused = err, append(refused, k)
			if v.names || len(keys) == 1 {
				v.last[k] = time.Now()
			}
		}
	}
	switch {
	case why == nil:
		return ""
	case !v.names:
		refused = nil
	}
	return "|" + why.Error() + "|" + strings.Join(refused, " ")
}

// slowAnswer parses an answer of a slowVenue.
func slowAnswer(m reconnect.Message) (a subscription.Answer[string], ok bool) {
	parts := strings.Split(string(m.Data), "|")
	if a.ID = parts[0]; len(parts) > 1 {
		a.Err, a.Refused = errors.New(parts[1]), strings.Fields(parts[2])
	}
	return a, true
}

func (c *slowConn) Close(context.Context, int, string) error { return c.CloseNow() }

func (c *slowConn) CloseNow() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// slowScene is a slowVenue with clients whose options are the defaults.
type slowScene struct {
	clients, keys int // keys of each client
	essential     bool
	venue         *slowVenue

	sets []*subscription.Set[string]
}

// run returns when the clients hold n keys in total, after limit at the latest, and what they hold then.
func (s *slowScene) run(t *testing.T, n int, limit time.Duration) (took time.Duration, held int) {
	s.open(t)
	return s.await(n, limit)
}

// open makes the clients.
func (s *slowScene) open(t *testing.T) {
	s.venue.random, s.venue.last = rand.New(rand.NewPCG(1, 2)), map[string]time.Time{}
	for range s.clients {
		o := subscription.Options[string]{
			Encode: func(r *subscription.Request[string]) (conn.Message, error) {
				return conn.TextMessage(r.ID + " " + strings.Join(r.Keys, " ")), nil
			},
			Answer: slowAnswer,
		}
		if s.essential {
			o.Essential = func(string) bool { return true }
		}
		set, err := subscription.New(&o)
		require.NoError(t, err)
		set.Add(symbols(s.keys)...)
		c, err := reconnect.New(s.venue, &reconnect.Options{
			Layers:   []*reconnect.Layer{set.Layer()},
			Inbox:    reconnect.Inbox{Overflow: reconnect.InboxDiscard},
			Liveness: reconnect.Liveness{Limit: -1},
		})
		require.NoError(t, err)
		s.sets = append(s.sets, set)
		t.Cleanup(func() { c.Close(); <-c.Done() })
	}
}

// await returns when the clients hold n keys in total, after limit at the latest, and what they hold then.
func (s *slowScene) await(n int, limit time.Duration) (took time.Duration, held int) {
	start := time.Now()
	for held < n && time.Since(start) < limit {
		time.Sleep(100 * time.Millisecond)
		held = 0
		for _, set := range s.sets {
			held += set.Stats().Held
		}
	}
	return time.Since(start), held
}

// after returns a latency.
func after(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

// Least is the time that is possible. A missing answer costs a Timeout, so that a venue which loses requests takes
// longer than one that is slow.
func TestSlowVenueGetsHardlyMoreRequestsThanNeeded(t *testing.T) {
	const rate400 = 2500 * time.Microsecond // 400 keys in a second
	for name, test := range map[string]struct {
		scene    *slowScene
		within   time.Duration
		requests int
	}{
		"33 keys in a second": { // least: 60 s, 40
			&slowScene{clients: 1, keys: 2000, venue: &slowVenue{perKey: 30 * time.Millisecond}}, 61 * time.Second, 40,
		},
		"11 s an answer": { // least: 22 s, 10
			&slowScene{clients: 1, keys: 500, venue: &slowVenue{latency: after(11 * time.Second)}}, 23 * time.Second, 11,
		},
		"100 s an answer": { // least: 500 s, 40
			&slowScene{clients: 1, keys: 2000, venue: &slowVenue{latency: after(100 * time.Second)}}, 501 * time.Second, 42,
		},
		"40 clients": { // least: 50 s, 400
			&slowScene{clients: 40, keys: 500, venue: &slowVenue{perKey: rate400}}, 57 * time.Second, 450,
		},
		"answers in any order": { // least: about 45 s, 40
			&slowScene{clients: 1, keys: 2000, venue: &slowVenue{latency: func(r *rand.Rand) time.Duration {
				return time.Duration(r.Int64N(int64(15 * time.Second)))
			}}}, time.Minute, 44,
		},
		"30 % of requests lost": {
			&slowScene{clients: 1, keys: 2000, venue: &slowVenue{
				latency: after(50 * time.Millisecond),
				loses:   func(r *rand.Rand, _ time.Time, _ []string) bool { return r.IntN(10) < 3 },
			}}, 75 * time.Second, 70,
		},
		"40 clients, requests beyond a queue of 100 are dropped": {
			&slowScene{clients: 40, keys: 500, venue: &slowVenue{perKey: rate400, queue: 100}}, 75 * time.Second, 750,
		},
		"500 essential keys, 11 s an answer": { // least: 22 s, 10
			&slowScene{clients: 1, keys: 500, essential: true, venue: &slowVenue{latency: after(11 * time.Second)}},
			23 * time.Second, 11,
		},
		"500 essential keys, 20 s an answer": { // least: 40 s, 10
			&slowScene{clients: 1, keys: 500, essential: true, venue: &slowVenue{latency: after(20 * time.Second)}},
			41 * time.Second, 10,
		},
		"2,000 essential keys, 33 keys in a second": { // least: 60 s, 40
			&slowScene{clients: 1, keys: 2000, essential: true, venue: &slowVenue{perKey: 30 * time.Millisecond}},
			61 * time.Second, 40,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, all := test.scene, test.scene.clients*test.scene.keys
				took, held := s.run(t, all, 2*time.Hour)
				s.venue.mu.Lock()
				defer s.venue.mu.Unlock()
				t.Logf("%d keys held after %v, %d requests", held, took, s.venue.requests)
				require.Equal(t, all, held)
				require.LessOrEqual(t, took, test.within)
				require.LessOrEqual(t, s.venue.requests, test.requests)
				require.Equal(t, s.clients, s.venue.dials)
			})
		})
	}
}

// While the venue is silent one request at a time goes out, more and more rarely. Once it works, the keys are held
// after two timeouts at most.
func TestSilentVenueIsAskedMoreAndMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := time.Now().Add(time.Hour)
		s := &slowScene{clients: 1, keys: 500, venue: &slowVenue{loses: func(_ *rand.Rand, now time.Time, _ []string) bool { return now.Before(works) }}}
		took, held := s.run(t, 500, 2*time.Hour)
		t.Logf("%d keys held after %v, %d requests", held, took, s.venue.total())
		require.Equal(t, 500, held)
		require.LessOrEqual(t, took, time.Hour+10*time.Minute)
		require.LessOrEqual(t, s.venue.total(), 60)
	})
}
