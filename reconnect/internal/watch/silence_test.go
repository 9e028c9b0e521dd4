package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/link"
)

func TestOneQuickAnswerEndsPatience(t *testing.T) {
	require.True(t, promptAnswer(20*time.Second, 30*time.Second))
	require.False(t, promptAnswer(20*time.Second+1, 30*time.Second))
}

// A timer that is late by less than a pulse is nothing special. After a longer stop the second half
// of its time still counts, so that a timer which is always late comes to an end, too.
func TestTimeForWhichTheProcessWasStoppedDoesNotCount(t *testing.T) {
	const pulse = 8 * time.Second
	half := pulse / 2
	require.Zero(t, stopped(half, pulse), "in time")
	require.Zero(t, stopped(half+pulse, pulse))
	require.Equal(t, half+pulse+1, stopped(half+pulse+1, pulse))
	require.Equal(t, time.Hour, stopped(time.Hour, pulse))
}

// A look costs no memory, however long the peer is silent.
func TestSilenceLooksWithoutAllocating(t *testing.T) {
	const at = link.Instant(time.Hour)
	const third = 8 * time.Second
	l := limits{configuredLimit: 3 * third, configuredProbeAfter: third, probeAfter: third}
	var s silence
	a := s.start(at, at.Nanoseconds(), at, l)
	now := at
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now += a.wait
		s.wake(now, now.Nanoseconds(), false, l)
		s.hear(at, l)
		if a = s.look(now, false, false, l); a.kind == actProbe {
			s.began(now, a)
			s.wrote(now, a)
			a = s.next(now, l)
		}
	}))
}
