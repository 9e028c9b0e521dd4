package netwatch

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
)

// timeBound is a time that an option sets, or that the documentation names.
type timeBound struct {
	name string
	n    time.Duration
	at   bool // the event has happened at n itself
	o    Options

	// happened reports whether the event has happened after k.
	happened func(t *testing.T, s *scene, k time.Duration) bool
}

var timeBounds = []timeBound{
	{"Interval", 3 * time.Second, true, Options{Interval: 3 * time.Second}, noticed},
	{"Interval by default", 10 * time.Second, true, Options{}, noticed},
	{"settle", 500 * time.Millisecond, true, Options{}, settled},
	{"settle, ten times", 5 * time.Second, true, Options{},
		func(t *testing.T, s *scene, k time.Duration) bool {
			changes := s.w.Changes(t.Context())
			for s.move("192.0.2.2"); k > 100*time.Millisecond; k -= 100 * time.Millisecond { // a burst without an end
				s.sleep(100 * time.Millisecond)
				s.announce()
			}
			s.sleep(k)
			return len(changes) == 1
		}},
	{"sleep of the machine", 5 * time.Second, false, Options{}, func(t *testing.T, s *scene, k time.Duration) bool {
		changes := s.w.Changes(t.Context())
		s.set(func(s *scene) { s.ahead = k })
		s.sleep(10 * time.Second)
		return len(changes) == 1
	}},
}

// noticed reports whether a change that was not announced is reported within k.
func noticed(t *testing.T, s *scene, k time.Duration) bool {
	changes := s.w.Changes(t.Context())
	s.set(func(s *scene) { s.network = at("192.0.2.2") })
	s.sleep(k)
	return len(changes) == 1
}

// settled reports whether a change is reported within k of the last announcement.
func settled(t *testing.T, s *scene, k time.Duration) bool {
	changes := s.w.Changes(t.Context())
	s.announce()
	s.sleep(100 * time.Millisecond)
	s.move("192.0.2.2")
	s.sleep(k)
	return len(changes) == 1
}

// What happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				inScene(t, &b.o, func(t *testing.T, s *scene) {
					want := k > b.n || k == b.n && b.at
					require.Equal(t, want, b.happened(t, s, k), "after %v, and the option is %v", k, b.n)
				})
			}
		})
	}
}

// spreads are the options of the calls after a change.
var spreads = []struct {
	name      string
	o         Options
	high      time.Duration // a call is drawn from [0, high)
	precision time.Duration // to which the first and the last of many calls are at the ends
}{
	{"Spread", Options{Spread: 3}, 3, 0},
	{"Spread by default", Options{}, time.Second, 10 * time.Millisecond},
}

// A connection may be called immediately, and not at the end of Spread.
func TestCallsStayWithinTheSpread(t *testing.T) {
	for _, b := range spreads {
		t.Run(b.name, func(t *testing.T) {
			inScene(t, &b.o, func(t *testing.T, s *scene) {
				conns := make([]*fakeConn, 5000)
				for i := range conns {
					conns[i] = newFakeConn()
					s.w.Attach(t.Context(), conns[i])
				}
				s.move("192.0.2.2")
				changed := time.Now().Add(settle)
				s.sleep(time.Minute)
				first, last := time.Hour, time.Duration(0)
				for _, c := range conns {
					require.Len(t, c.at, 1)
					first, last = min(first, c.at[0].Sub(changed)), max(last, c.at[0].Sub(changed))
				}
				require.LessOrEqual(t, first, b.precision)
				require.GreaterOrEqual(t, last, b.high-1-b.precision)
				require.Less(t, last, b.high)
			})
		})
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[Options]()}
	require.Empty(t, numeric.WithoutRow(options, timeBounds, spreads))
}
