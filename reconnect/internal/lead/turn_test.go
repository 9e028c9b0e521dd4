package lead

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// follower is a connection that was woken before.
type follower struct {
	conn.Conn
	conn.Follower
}

func (follower) Wake()       {}
func (follower) Woken() bool { return true }

// The turn has come back, and before the supervisor has seen that the reader wants it again. Else nobody would read.
func TestTheSupervisorReadsAgainAlthoughTheReaderWantsToReadOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l link.Link
		l.Begin(follower{}, &link.Life{}, budget.Window{})
		turn := New(&l, func() {}, false)
		turn.waits = enough
		require.False(t, turn.Take())
		require.True(t, turn.Asked())
		lent := make(chan struct{})
		go func() { defer close(lent); turn.Lend() }()
		synctest.Wait()
		require.Equal(t, Free, turn.State())
		turn.expire()
		turn.waiting = false
		turn.expired.Store(false)
		require.False(t, turn.Take())
		<-lent
		require.Equal(t, Asked, turn.State())
		turn.End()
	})
}
