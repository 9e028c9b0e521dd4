package link

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// So Parted ends the link, too, because the goroutine of Fail waits for the end.
func TestPartedWaitsForFailAlthoughTheReaderKnowsTheCause(t *testing.T) {
	inBubble(t, noLimit, func(t *testing.T, w *world) {
		w.Fail(errFirst)
		w.EndedBy(errSecond)
		w.Parted()
		require.True(t, w.Ended())
		require.Zero(t, w.now())
	})
}

// A length in milliseconds is the same in each process: histories replay because of that.
func TestTheInstantsOfABubbleAreTheSameInEachProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { require.Zero(t, Now()%time.Second) })
}

// A connection may wait in the middle of a message: its memory is in use.
func TestAPageKeepsTheMemoryOfAMessageThatIsBeingRead(t *testing.T) {
	p := NewPage(newWorld(transport, noLimit).Link)
	p.room(10)
	p.rest()
	require.NotNil(t, p.chunk)
	p.Done(conn.Message{})
	p.rest()
	require.Nil(t, p.chunk)
}

// slow is a connection that takes a second to close. Another call meanwhile returns at once, as that of a net.Conn does.
type slow struct {
	conn.Conn
	closing atomic.Bool
}

func (s *slow) CloseNow() error {
	if !s.closing.Swap(true) {
		time.Sleep(time.Second)
	}
	return nil
}

// A timer, and the supervisor, which then dials: with OneConnection there must not be two connections.
func TestCutReturnsWhenTheConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Link
		l.Begin(new(slow), &Life{}, noLimit)
		start := time.Now()
		go l.Cut(errors.New("silent")) // the next Cut waits for it
		synctest.Wait()
		l.Cut(errors.New("read"))
		require.Equal(t, time.Second, time.Since(start))
	})
}
