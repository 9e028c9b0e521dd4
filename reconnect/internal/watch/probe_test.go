package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
