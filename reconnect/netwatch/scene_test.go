package netwatch

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// scene is a machine whose network a test changes, in virtual time, and a Watcher of it.
type scene struct {
	t       *testing.T
	w       *Watcher
	start   time.Time
	events  chan error
	refusal error // of listen
	stopped bool  // listen was

	mu      sync.Mutex // guards what follows
	network Network
	err     error           // of look
	ahead   time.Duration   // of the wall clock
	looks   []time.Duration // when, since the start
}

var errBroken = errors.New("broken")

// inScene runs a script in virtual time.
func inScene(t *testing.T, o *Options, script func(*testing.T, *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.watch(o)
		defer func() {
			s.w.Close()
			<-s.w.Done()
			require.True(t, s.stopped)
		}()
		script(t, s)
	})
}

// newScene returns a machine with one address. Call it in a bubble.
func newScene(t *testing.T) *scene {
	return &scene{t: t, start: time.Now(), network: at("192.0.2.1")}
}

func (s *scene) watch(o *Options) {
	s.t.Helper()
	var err error
	s.w, err = start(context.Background(), o, s.machine())
	require.NoError(s.t, err)
}

func (s *scene) machine() machine {
	return machine{
		look: func(func(string) bool) (Network, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.looks = append(s.looks, time.Since(s.start))
			return s.network, s.err
		},
		listen: func(events chan error) (func(), error) {
			s.events = events
			return func() { s.stopped = true }, s.refusal
		},
		wall: func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return time.Now().Add(s.ahead)
		},
	}
}

// set changes the machine and announces nothing.
func (s *scene) set(f func(*scene)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// move gives the machine another address, and announces that.
func (s *scene) move(to string) {
	s.set(func(s *scene) { s.network = at(to) })
	s.announce()
}

// sleep lets time pass, until all that it brings has happened.
func (s *scene) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *scene) announce() {
	s.events <- nil
	synctest.Wait()
}

// wantLooks asserts when the Watcher has looked, besides the first look.
func (s *scene) wantLooks(want ...time.Duration) {
	s.t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(s.t, append([]time.Duration{0}, want...), s.looks)
}

// wantNone asserts that no change is reported.
func wantNone(t *testing.T, changes <-chan Change) {
	t.Helper()
	synctest.Wait()
	require.Empty(t, changes)
}

// wantChange returns the next change.
func wantChange(t *testing.T, changes <-chan Change) Change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(time.Hour):
		require.FailNow(t, "no change is reported")
		return Change{}
	}
}

// wantEnd asserts that a channel is closed.
func wantEnd(t *testing.T, changes <-chan Change) {
	t.Helper()
	synctest.Wait()
	select {
	case c, ok := <-changes:
		require.False(t, ok, "%v", c)
	default:
		require.Fail(t, "the channel is open")
	}
}

// at is the network of a machine with one address and a route.
func at(addr string) Network {
	a := netip.MustParseAddr(addr)
	return Network{
		Addresses: []Address{{Interface: "eth0", Addr: a}},
		IPv4:      Route{Interface: "eth0", Gateway: netip.MustParseAddr("192.0.2.254"), Source: a},
	}
}
