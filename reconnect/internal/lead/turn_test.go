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
		turn.state.And(^uint32(expired))
		require.False(t, turn.Take())
		<-lent
		require.Equal(t, Asked, turn.State())
		turn.End()
	})
}

// The turn became free late, for a reader that had asked for it and has got its message from the inbox meanwhile. That
// reader has waited less than enough. If it did not take the turn, nobody would read until the timer ticks twice.
func TestTheReaderTakesATurnThatIsFreeHoweverRarelyItHasWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l link.Link
		l.Begin(follower{}, &link.Life{}, budget.Window{})
		turn := New(&l, func() {}, true)
		turn.waits = enough
		require.False(t, turn.Take())
		lent := make(chan struct{})
		go func() { defer close(lent); turn.Lend() }()
		synctest.Wait()
		require.Equal(t, Free, turn.State())
		turn.Got()
		turn.state.Or(expired) // what expire says after it has given the turn back, which the reader has asked for again
		require.True(t, turn.Take())
		turn.Leave(true)
		<-lent
		require.False(t, turn.Take(), "from now on the reader waits more often")
		require.Equal(t, Supervisor, turn.State())
		turn.End()
	})
}

// The reader asks for the turn at its fourth wait in a row, not before.
func TestTheReaderAsksForTheTurnAtItsFourthWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l link.Link
		l.Begin(follower{}, &link.Life{}, budget.Window{})
		turn := New(&l, func() {}, false)
		for range 3 {
			require.False(t, turn.Take())
			require.Equal(t, Supervisor, turn.State())
			turn.Got()
		}
		require.False(t, turn.Take())
		require.Equal(t, Asked, turn.State())
		turn.End()
	})
}
