package rotate_test

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
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
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		s.Fake = scene.Alive
		r.Drain = time.Millisecond
		c := s.Open(&reconnect.Options{Rotate: r})
		sessions, end := 0, time.After(time.Minute)
		for ended := false; !ended; {
			select {
			case d := <-s.Dials:
				d.Accept()
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
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			o := scene.WithPolicy(scene.Every(0))
			s.Open(&o)
			refusesForAMinute(t, s)
		})
	})
	t.Run("after a loss", func(t *testing.T) {
		scene.InEachForm(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = scene.Alive
			o := scene.WithPolicy(scene.Every(0))
			_, peer := s.Ready(&o)
			peer.Fail(scene.ErrLost)
			refusesForAMinute(t, s)
		})
	})
	for name, overlap := range overlaps {
		t.Run("in a rotation, "+name, func(t *testing.T) {
			scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
				s.Fake = scene.Alive
				o := scene.WithPolicy(scene.Every(0))
				o.Rotate.Overlap = overlap
				c := s.Open(&o)
				(<-s.Dials).Accept()
				synctest.Wait()
				c.Rotate(c.Status().Session, reconnect.Advice{})
				refusesForAMinute(t, s)
			})
		})
	}
}

// refusesForAMinute refuses each dial, and requires that they go on, but never ran in a hot loop.
func refusesForAMinute(t *testing.T, s *scene.Scene) {
	t.Helper()
	dials := 0
	for end := time.After(time.Minute); ; {
		select {
		case d := <-s.Dials:
			d.Refuse(syscall.ECONNREFUSED)
			dials++
			require.LessOrEqual(t, dials, 2+10+100*60)
		case <-end:
			require.Greater(t, dials, 50*60)
			return
		}
	}
}
