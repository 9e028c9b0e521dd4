package drain_test

import (
	"context"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/drain"
)

// bounds are the limits on closers.
var bounds = []struct {
	name  string
	n     int
	o     drain.Options
	takes time.Duration // how long each closer takes
	after time.Duration // when to look
}{
	{"Closers", 3, drain.Options{Closers: 3}, time.Second, 0},
	{"Closers by default", 256, drain.Options{}, time.Second, 0},
	{"Closers, 16 times that are slow", 32, drain.Options{Closers: 2}, time.Hour, time.Minute},
}

// As many closers run at a time as Closers says, and no more.
func TestBoundsAreExact(t *testing.T) {
	for _, b := range bounds {
		for k := b.n - 1; k <= b.n+1; k++ {
			o := b.o
			o.Lead, o.Window, o.CloseTimeout = -1, -1, time.Hour
			withGroup(t, o, func(t *testing.T, s *scene) {
				running := new(atomic.Int32)
				for range k {
					s.Add(func(int, string) error {
						running.Add(1)
						time.Sleep(b.takes)
						return nil
					})
				}
				go s.Drain(context.Background())
				time.Sleep(b.after)
				synctest.Wait()
				require.EqualValues(t, min(k, b.n), running.Load(), "%s: %d of %d", b.name, k, b.n)
				time.Sleep(3 * time.Hour)
			})
		}
	}
}

// timeBound is a time that an option sets, or that the documentation names.
type timeBound struct {
	name     string
	n        time.Duration
	o        drain.Options
	happened func(t *testing.T, s *scene, k time.Duration) bool
}

var timeBounds = []timeBound{
	{"Lead", 3 * time.Second, drain.Options{Lead: 3 * time.Second, Window: -1}, closesAfter},
	{"Lead by default", 15 * time.Second, drain.Options{Window: -1}, closesAfter},
	{"CloseTimeout", 3 * time.Second, drain.Options{Lead: -1, Window: -1, CloseTimeout: 3 * time.Second}, hangsAfter},
	{"CloseTimeout by default", 10 * time.Second, drain.Options{Lead: -1, Window: -1}, hangsAfter},
	{"time for which a call counts for Closers", time.Second, drain.Options{Lead: -1, Window: -1, Closers: 1},
		func(t *testing.T, s *scene, k time.Duration) bool {
			s.Add(s.closer(1, 2*time.Second))
			s.Add(s.closer(2, 2*time.Second))
			go s.Drain(context.Background())
			time.Sleep(k)
			synctest.Wait()
			return len(s.closes()) == 2
		}},
}

// closesAfter reports whether k after the start of a drain a connection is closed.
func closesAfter(_ *testing.T, s *scene, k time.Duration) bool {
	s.add(1, 1)
	go s.Drain(context.Background())
	time.Sleep(k)
	synctest.Wait()
	return len(s.closes()) == 1
}

// hangsAfter reports whether a closer that hangs counts as hung after k.
func hangsAfter(t *testing.T, s *scene, k time.Duration) bool {
	s.Add(hang(t))
	go s.Drain(context.Background())
	time.Sleep(k)
	synctest.Wait()
	return s.Stats().Hung == 1
}

// What happens after a time does not happen a nanosecond before that.
func TestTimesAreExact(t *testing.T) {
	for _, b := range timeBounds {
		t.Run(b.name, func(t *testing.T) {
			for k := b.n - 1; k <= b.n+1; k++ {
				withGroup(t, b.o, func(t *testing.T, s *scene) {
					require.Equal(t, k >= b.n, b.happened(t, s, k), "after %v of %v", k, b.n)
					time.Sleep(time.Minute)
				})
			}
		})
	}
}

// limits are the greatest times that an option may have.
var limits = []struct {
	name string
	n    time.Duration
	o    func(k time.Duration) drain.Options
}{
	{"Advice.Wait", time.Hour, func(k time.Duration) drain.Options {
		return drain.Options{Advice: drain.Advice{Wait: k}}
	}},
	{"Advice.Spread", time.Hour, func(k time.Duration) drain.Options {
		return drain.Options{Advice: drain.Advice{Spread: k}}
	}},
	{"Advice.Wait and Spread", 20 * time.Minute, func(k time.Duration) drain.Options {
		return drain.Options{Advice: drain.Advice{Wait: 40 * time.Minute, Spread: k}}
	}},
	{"Warn, of Window", 30 * time.Second, func(k time.Duration) drain.Options {
		return drain.Options{Window: 30 * time.Second, Warn: k}
	}},
	{"Warn, of MaxAge", 20 * time.Second, func(k time.Duration) drain.Options {
		return drain.Options{MaxAge: 40 * time.Second, Warn: k}
	}},
}

func TestLimitsOfOptionsAreExact(t *testing.T) {
	for _, l := range limits {
		for k := l.n - 1; k <= l.n+1; k++ {
			o := l.o(k)
			_, err := drain.New(&o)
			require.Equal(t, k <= l.n, err == nil, "%s: %v of %v: %v", l.name, k, l.n, err)
		}
	}
}

// constant is a source whose draws are all the same.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c) }

const least, most = constant(0), ^constant(0)

// drawn are the options that bound a draw.
var drawn = map[string]struct {
	o      drain.Options
	notice bool
	want   time.Duration // when the connection is closed
}{
	"Window, the start":    {drain.Options{Rand: least, Lead: -1, Window: time.Minute}, false, 0},
	"Window":               {drain.Options{Rand: most, Lead: -1, Window: time.Minute}, false, time.Minute - 1},
	"MaxAge, less a tenth": {drain.Options{Rand: least, MaxAge: time.Hour}, false, 54 * time.Minute},
	"MaxAge":               {drain.Options{Rand: most, MaxAge: time.Hour}, false, 66*time.Minute - 1},
	"Warn":                 {drain.Options{Rand: least, Lead: -1, Window: time.Minute, Warn: 7}, true, 7},
	"Warn by default":      {drain.Options{Rand: least, Lead: -1, Window: time.Minute}, true, 15 * time.Second},
	"Window by default":    {drain.Options{Rand: most, Lead: -1}, false, time.Minute - 1},
}

// A draw may be the start of its range, and not the end.
func TestDrawsStayInTheirRange(t *testing.T) {
	for name, b := range drawn {
		t.Run(name, func(t *testing.T) {
			withGroup(t, b.o, func(t *testing.T, s *scene) {
				if b.notice {
					s.AddNotice(s.closer(1, 0), s.noticer(1, 0))
				} else {
					s.add(1, 1)
				}
				if b.o.MaxAge == 0 {
					s.drain()
				}
				time.Sleep(2 * time.Hour)
				require.Len(t, s.closes(), 1)
				require.Equal(t, b.want, s.closes()[0].at)
			})
		})
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{
		"":        reflect.TypeFor[drain.Options](),
		"Advice.": reflect.TypeFor[drain.Advice](),
	}
	require.Empty(t, numeric.WithoutRow(options, bounds, timeBounds, limits, drawn))
}
