package drain_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// scene is a Group in virtual time, and what has become of its members.
type scene struct {
	*drain.Group
	t     *testing.T
	start time.Time

	mu     sync.Mutex // guards what follows
	closed []event
	told   []event
}

// event is a call of a closer or a notice.
type event struct {
	member int
	at     time.Duration // since the start of the test
	by     time.Duration // of a notice
	code   int
	reason string
}

// withGroup runs test in a bubble. The draws are the same in each run.
func withGroup(t *testing.T, o drain.Options, test func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o.Rand == nil {
			o.Rand = rand.NewPCG(1, 2)
		}
		g, err := drain.New(&o)
		require.NoError(t, err)
		test(t, &scene{Group: g, t: t, start: time.Now()})
	})
}

func (s *scene) now() time.Duration { return time.Since(s.start) }

// add adds the members from one number to another. Closing takes no time.
func (s *scene) add(from, to int) (members []*drain.Member) {
	for i := from; i <= to; i++ {
		members = append(members, s.Add(s.closer(i, 0)))
	}
	return members
}

// closer returns the closer of a member, which takes some time.
func (s *scene) closer(member int, takes time.Duration) func(int, string) error {
	return func(code int, reason string) error {
		s.mu.Lock()
		s.closed = append(s.closed, event{member: member, at: s.now(), code: code, reason: reason})
		s.mu.Unlock()
		time.Sleep(takes)
		return nil
	}
}

// noticer returns the notice of a member, which takes some time.
func (s *scene) noticer(member int, takes time.Duration) func(time.Time) {
	return func(by time.Time) {
		s.mu.Lock()
		s.told = append(s.told, event{member: member, at: s.now(), by: by.Sub(s.start)})
		s.mu.Unlock()
		time.Sleep(takes)
	}
}

// closes returns what was closed so far, in order.
func (s *scene) closes() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]event{}, s.closed...)
}

// notices returns the notices so far, in order.
func (s *scene) notices() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]event{}, s.told...)
}

// times returns when the events were.
func times(events []event) (list []time.Duration) {
	for _, e := range events {
		list = append(list, e.at)
	}
	return list
}

// drain drains without a limit, and returns how long it took.
func (s *scene) drain() (took time.Duration) {
	s.t.Helper()
	before := s.now()
	require.NoError(s.t, s.Drain(context.Background()))
	return s.now() - before
}

// begin begins to drain, and returns a function that waits for the end.
func (s *scene) begin(ctx context.Context) (end func() error) {
	result := make(chan error, 1)
	go func() { result <- s.Drain(ctx) }() // waited for by end
	synctest.Wait()
	return func() error { return <-result }
}

// busiest returns the most events in one tenth of a second.
func busiest(events []time.Duration) (most int) {
	tenths := map[time.Duration]int{}
	for _, at := range events {
		tenths[at/(100*time.Millisecond)]++
		most = max(most, tenths[at/(100*time.Millisecond)])
	}
	return most
}
