package reconnect_test

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// Promise 3: neither a short Rotate.After nor a program that rotates every session dials in a hot
// loop.
func TestRotationsAreNoHotLoop(t *testing.T) {
	for name, overlap := range overlaps {
		t.Run("short age, "+name, func(t *testing.T) {
			rotatesInAMinute(t, reconnect.Rotation{After: time.Millisecond, Overlap: overlap}, false)
		})
		t.Run("each session, "+name, func(t *testing.T) {
			rotatesInAMinute(t, reconnect.Rotation{Overlap: overlap}, true)
		})
	}
}

// rotatesInAMinute requires that there are at most 10 + 30 rotations in a minute, and that the Conn
// does not stop rotating. If each is true, the program requests a rotation as soon as a session is
// ready.
func rotatesInAMinute(t *testing.T, r reconnect.Rotation, each bool) {
	t.Helper()
	inBubble(t, func(t *testing.T, s *scene) {
		s.fake = alive
		r.Drain = time.Millisecond
		c := s.open(&reconnect.Options{Rotate: r})
		sessions, end := 0, time.After(time.Minute)
		for ended := false; !ended; {
			select {
			case d := <-s.dials:
				d.accept()
				sessions++
				if each {
					synctest.Wait()
					c.Rotate(c.Status().Session, reconnect.Advice{})
				}
			case <-end:
				ended = true
			}
		}
		require.LessOrEqual(t, sessions, 1+10+30)
		require.Greater(t, sessions, 1+30)
	})
}

// Promise 3: a policy that never waits makes no hot loop either.
func TestAPolicyThatNeverWaitsIsNoHotLoop(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		inBubble(t, func(t *testing.T, s *scene) {
			o := withPolicy(every(0))
			s.open(&o)
			refusesForAMinute(t, s)
		})
	})
	t.Run("after a loss", func(t *testing.T) {
		inEachForm(t, func(t *testing.T, s *scene) {
			s.fake = alive
			o := withPolicy(every(0))
			_, peer := s.ready(&o)
			peer.Fail(errLost)
			refusesForAMinute(t, s)
		})
	})
	for name, overlap := range overlaps {
		t.Run("in a rotation, "+name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				s.fake = alive
				o := withPolicy(every(0))
				o.Rotate.Overlap = overlap
				c := s.open(&o)
				(<-s.dials).accept()
				synctest.Wait()
				c.Rotate(c.Status().Session, reconnect.Advice{})
				refusesForAMinute(t, s)
			})
		})
	}
}

// refusesForAMinute refuses each dial, and requires that they go on, but never ran in a hot loop.
func refusesForAMinute(t *testing.T, s *scene) {
	t.Helper()
	dials := 0
	for end := time.After(time.Minute); ; {
		select {
		case d := <-s.dials:
			d.refuse(syscall.ECONNREFUSED)
			dials++
			require.LessOrEqual(t, dials, 2+10+100*60)
		case <-end:
			require.Greater(t, dials, 50*60)
			return
		}
	}
}
