package subscription_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// total returns how many requests the venue has got.
func (v *slowVenue) total() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requests
}

// count returns how many requests the venue gets in d.
func (v *slowVenue) count(d time.Duration) int {
	before := v.total()
	time.Sleep(d)
	return v.total() - before
}

// idle returns how long ago the key was refused for which that is the longest ago.
func (v *slowVenue) idle() (longest time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, at := range v.last {
		longest = max(longest, time.Since(at))
	}
	return longest
}

// 2,000 keys are refused for four hours. Each is requested twice an hour, whatever the text of the error is. Then
// the venue agrees.
func TestRefusedKeysAreRequestedInHalfAnHour(t *testing.T) {
	serial := 0
	for name, test := range map[string]struct {
		text     func(k string) string
		names    bool
		requests int // in half an hour
		idle     time.Duration
		recovery time.Duration
		spent    int // requests until all keys are held
	}{
		"one error":         {func(string) string { return "not entitled" }, false, 2200, 35 * time.Minute, 10 * time.Second, 60},
		"error with key":    {func(k string) string { return "no such key: " + k }, false, 2200, 35 * time.Minute, 10 * time.Second, 60},
		"refused by name":   {func(string) string { return "not entitled" }, true, 60, 35 * time.Minute, 2 * time.Minute, 60},
		"error with number": {func(string) string { serial++; return fmt.Sprint("request denied: ", serial) }, false, 2600, 40 * time.Minute, time.Minute, 150},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				again := time.Now().Add(4 * time.Hour)
				s := &slowScene{clients: 1, keys: 2000, venue: &slowVenue{names: test.names, latency: after(20 * time.Millisecond)}}
				s.venue.refuses = func(now time.Time, k string) error {
					if now.Before(again) {
						return errors.New(test.text(k))
					}
					return nil
				}
				s.open(t)
				first := s.venue.count(10 * time.Minute)
				time.Sleep(2*time.Hour + 50*time.Minute)
				requests := s.venue.count(30 * time.Minute)
				idle := s.venue.idle()
				time.Sleep(30*time.Minute - time.Second)
				before := s.venue.total()
				time.Sleep(time.Second)
				took, held := s.await(2000, time.Hour)
				t.Logf("%d requests in 10 min, %d in half an hour after 3 h, a key waits up to %v; %d held after %v, %d requests",
					first, requests, idle.Round(time.Second), held, took, s.venue.total()-before)
				require.LessOrEqual(t, requests, test.requests)
				require.LessOrEqual(t, idle, test.idle)
				require.Equal(t, 2000, held)
				require.LessOrEqual(t, took, test.recovery)
				require.LessOrEqual(t, s.venue.total()-before, test.spent)
			})
		})
	}
}

// What the venue agrees to never waits for what it refuses, and a key that becomes good alone does for half an hour.
func TestHealthyKeysDoNotWaitForRefusedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := "SYM01000"
		again := time.Now().Add(2 * time.Hour)
		s := &slowScene{clients: 1, keys: 2000, venue: &slowVenue{latency: after(20 * time.Millisecond)}}
		s.venue.refuses = func(now time.Time, k string) error {
			if k == "new" || k == good && now.After(again) {
				return nil
			}
			return errors.New("not entitled")
		}
		s.open(t)
		time.Sleep(2 * time.Hour)
		s.sets[0].Add("new")
		took, _ := s.await(1, time.Hour)
		require.LessOrEqual(t, took, time.Second)
		took, held := s.await(2, time.Hour)
		t.Logf("held after %v", took)
		require.Equal(t, 2, held)
		require.LessOrEqual(t, took, 35*time.Minute)
	})
}

// Each of a few keys is requested more rarely, too.
func TestFewRefusedKeysCostLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowScene{clients: 1, keys: 20, venue: &slowVenue{
			refuses: func(time.Time, string) error { return errors.New("not entitled") },
		}}
		s.open(t)
		first := s.venue.count(time.Hour)
		second := s.venue.count(time.Hour)
		time.Sleep(time.Hour)
		fourth := s.venue.count(time.Hour)
		t.Logf("%d, %d and %d requests", first, second, fourth)
		require.LessOrEqual(t, first, 600)
		require.LessOrEqual(t, second, first/3)
		require.InDelta(t, 45, fourth, 10)
	})
}

// The session is lost while it probes two keys, so that their group is empty. Then the next one refuses both together.
func TestKeysOfLostProbeAreProbedAgain(t *testing.T) {
	var bad atomic.Bool
	bad.Store(true)
	fault := func(r venueRequest) venueFault { return venueFault{Ignored: !bad.Load() && len(r.Keys) == 2} }
	inBubble(t, &venueOptions{Bad: func(string) bool { return bad.Load() }, Fault: fault}, func(t *testing.T, s *scene) {
		s.ready("a", "b", "c")
		bad.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 1, s.set.Stats().Held)
		bad.Store(true)
		for _, p := range s.net.Conns(addr) {
			p.Reset()
		}
		before := s.venue.Stats().Requests
		time.Sleep(time.Second / 2)
		require.Zero(t, s.set.Stats().Held)
		require.Equal(t, before+2, s.venue.Stats().Requests, "one key alone, and two that are not divided")
		bad.Store(false)
		time.Sleep(time.Minute)
		s.synced("a", "b", "c")
	})
}

// The venue takes 30 s for each refusal, which is longer than the time between two probes.
func TestOneRequestProbesGroupAtTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowScene{clients: 1, keys: 20, venue: &slowVenue{
			latency: after(30 * time.Second),
			refuses: func(time.Time, string) error { return errors.New("not entitled") },
		}}
		s.open(t)
		time.Sleep(10 * time.Minute)
		requests := s.venue.count(5 * time.Minute)
		t.Logf("%d requests in 5 min", requests)
		require.LessOrEqual(t, requests, 10)
		require.Positive(t, requests)
	})
}
