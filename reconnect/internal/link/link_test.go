package link

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// A close code that the reader has seen stays the cause, when a ping fails a moment later.
func TestTheReadersErrorIsTheCauseForGood(t *testing.T) {
	var l Link
	l.Begin(nil, &Life{}, budget.Window{})
	overload := &conn.CloseError{Code: 1013}
	require.Equal(t, error(overload), l.EndedBy(overload))
	l.Fail(errors.New("broken pipe"))
	require.Equal(t, backoff.ReasonCloseOverload, l.Reason(overload))
	require.Equal(t, error(overload), l.Cause(overload))
	require.False(t, l.Unread())
}

// So Parted ends the link, too, because the goroutine of Fail waits for the end.
func TestPartedWaitsForFailAlthoughTheReaderKnowsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Link
		l.Begin(conntest.NewFake(nil).Conn(), &Life{}, budget.Window{})
		l.Fail(errors.New("broken pipe"))
		l.EndedBy(&conn.CloseError{Code: 1013})
		l.Parted()
		require.True(t, l.Ended())
	})
}

// A length in milliseconds is the same in each process: histories replay because of that.
func TestTheInstantsOfABubbleAreTheSameInEachProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { require.Zero(t, Now()%time.Second) })
}

// broken is a connection whose writes fail.
type broken struct{ conn.Conn }

func (broken) Write(conn.Message) error { return errors.New("broken pipe") }

// The message that failed may have been begun.
func TestAWriteThatFailsCountsInTheWindow(t *testing.T) {
	var l Link
	l.Begin(broken{}, &Life{}, budget.Window{N: 10, Per: time.Hour})
	n, err := l.Write(make([]conn.Message, 3))
	require.Zero(t, n)
	require.Error(t, err)
	require.Equal(t, 9, l.window().window.Free(time.Now()))
}

// A connection may wait in the middle of a message: its memory is in use.
func TestAPageKeepsTheMemoryOfAMessageThatIsBeingRead(t *testing.T) {
	var l Link
	l.Begin(conntest.NewFake(&conntest.FakeOptions{Transport: true}).Conn(), &Life{}, budget.Window{})
	p := NewPage(&l)
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
		l.Begin(new(slow), &Life{}, budget.Window{})
		start := time.Now()
		go l.Cut(errors.New("silent")) // the next Cut waits for it
		synctest.Wait()
		l.Cut(errors.New("read"))
		require.Equal(t, time.Second, time.Since(start))
	})
}
