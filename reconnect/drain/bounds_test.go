package drain_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/drain"
)

// As many closers run at a time as Closers says, and no more.
func TestClosersAreExact(t *testing.T) {
	const n = 3
	for k := n - 1; k <= n+1; k++ {
		withGroup(t, drain.Options{Lead: -1, Window: -1, Closers: n}, func(t *testing.T, s *scene) {
			running := new(atomic.Int32)
			for range k {
				s.Add(func(int, string) error { running.Add(1); time.Sleep(time.Second); return nil })
			}
			go s.Drain(context.Background())
			synctest.Wait()
			require.EqualValues(t, min(k, n), running.Load())
			time.Sleep(time.Minute)
		})
	}
}

// What happens after Lead or CloseTimeout does not happen a nanosecond before.
func TestTimesAreExact(t *testing.T) {
	const n = 3 * time.Second
	for name, b := range map[string]struct {
		o        drain.Options
		happened func(t *testing.T, s *scene, k time.Duration) bool
	}{
		"Lead": {drain.Options{Lead: n, Window: -1}, func(t *testing.T, s *scene, k time.Duration) bool {
			s.add(1, 1)
			go s.Drain(context.Background())
			time.Sleep(k)
			synctest.Wait()
			return len(s.closes()) == 1
		}},
		"CloseTimeout": {drain.Options{
			Lead: -1, Window: -1, CloseTimeout: n,
		}, func(t *testing.T, s *scene, k time.Duration) bool {
			s.Add(hang(t))
			go s.Drain(context.Background())
			time.Sleep(k)
			synctest.Wait()
			return s.Stats().Hung == 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for k := n - 1; k <= n+1; k++ {
				withGroup(t, b.o, func(t *testing.T, s *scene) {
					require.Equal(t, k >= n, b.happened(t, s, k), "after %v", k)
					time.Sleep(time.Minute)
				})
			}
		})
	}
}

// constant is a source whose draws are all the same.
type constant uint64

func (c constant) Uint64() uint64 { return uint64(c) }

// A draw may be the start of its range, and not the end.
func TestDrawsStayInTheirRange(t *testing.T) {
	const least, most = constant(0), ^constant(0)
	for name, b := range map[string]struct {
		o      drain.Options
		notice bool
		want   time.Duration // when the connection is closed
	}{
		"the start of Window":      {drain.Options{Rand: least, Lead: -1, Window: time.Minute}, false, 0},
		"the end of Window":        {drain.Options{Rand: most, Lead: -1, Window: time.Minute}, false, time.Minute - 1},
		"a tenth less than MaxAge": {drain.Options{Rand: least, MaxAge: time.Hour}, false, 54 * time.Minute},
		"a tenth more than MaxAge": {drain.Options{Rand: most, MaxAge: time.Hour}, false, 66*time.Minute - 1},
		"Warn":                     {drain.Options{Rand: least, Lead: -1, Window: time.Minute, Warn: 7}, true, 7},
		"Warn by default":          {drain.Options{Rand: least, Lead: -1, Window: time.Minute}, true, 15 * time.Second},
	} {
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
