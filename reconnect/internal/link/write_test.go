package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// One message is no batch.
func TestATransportGetsSeveralMessagesAtOnce(t *testing.T) {
	for o, batches := range map[*conntest.FakeOptions][]int{nil: nil, transport: {2, 3}} {
		w := newWorld(o, noLimit)
		for _, letters := range []string{"", "a", "bc", "def"} {
			n, err := w.Write(messages(letters))
			require.NoError(t, err)
			require.Len(t, letters, n)
		}
		require.Equal(t, "abcdef", w.written())
		require.Equal(t, batches, w.peer.Batches())
	}
}

// The message that failed may have been begun, and so it counts in the window.
func TestAWriteSaysHowManyMessagesWereHandedOver(t *testing.T) {
	for _, o := range []*conntest.FakeOptions{nil, transport} {
		for whole, written := range []string{"", "a", "ab", "abc"} {
			w := newWorld(o, budget.Window{N: 10, Per: time.Hour})
			w.peer.FailWriteAfter(whole, errFirst)
			n, err := w.Write(messages("abcd"))
			require.ErrorIs(t, err, errFirst)
			require.Equal(t, whole, n)
			require.Equal(t, written, w.written())
			require.Equal(t, 10-(whole+1), w.free())
		}
	}
}

// sloppy is a Transport whose WriteBatch returns n and err.
type sloppy struct {
	conn.Transport
	n   int
	err error
}

func (s sloppy) WriteBatch([]conn.Message) (int, error) { return s.n, s.err }

// The session ends even if the error of the Transport would not end it, and no more messages count as
// written than there were.
func TestATransportThatBreaksItsContract(t *testing.T) {
	for _, row := range []struct {
		n    int
		err  error
		want int
	}{
		{3, conn.ErrBadMessage, 3},
		{3, conn.ErrNotWritten, 3},
		{4, nil, 3},
		{4, errFirst, 3},
		{2, nil, 2},
		{0, nil, 0},
		{-1, nil, 0},
		{-1, errFirst, 0},
	} {
		w := newWorld(transport, noLimit)
		w.Transport = sloppy{w.Transport, row.n, row.err}
		n, err := w.Write(messages("abc"))
		require.Equal(t, row.want, n)
		text := fmt.Sprintf("link.sloppy returned n = %d for 3 messages and the error %v: ", row.n, row.err)
		require.ErrorContains(t, err, text)
		require.NotErrorIs(t, err, conn.ErrBadMessage)
		require.NotErrorIs(t, err, conn.ErrNotWritten)
	}
}

// refusing is a connection that refuses each message with an error.
type refusing struct {
	conn.Conn
	err error
}

func (r refusing) Write(conn.Message) error { return r.err }

// A message that the connection refuses is the mistake of its author. After any other error the connection has ended, but
// the reader may know more.
func TestAMessageAheadOfAllIsCountedOrEndsTheLink(t *testing.T) {
	type row struct {
		err          error
		count, bytes uint64
		cause        error
	}
	each(t, noLimit, map[string]row{
		"written": {nil, 1, 4, nil},
		"refused": {fmt.Errorf("write: %w", conn.ErrBadMessage), 0, 0, nil},
		"failed":  {errFirst, 0, 0, errFirst},
	}, func(t *testing.T, w *world, row row) {
		w.Begin(refusing{w.peer, row.err}, w.Life(), budget.Window{N: 3, Per: time.Hour})
		require.Equal(t, row.err, w.WriteFirst(t.Context(), conn.TextMessage("four")))
		require.Equal(t, row.count, w.Life().Counts.Written.Load())
		require.Equal(t, row.bytes, w.Life().Counts.WrittenBytes.Load())
		require.Equal(t, row.cause, w.Cause(nil))
		require.False(t, w.Ended())
		require.True(t, w.TryAcquire())
		require.Equal(t, 2, w.free())
	})
}

// stream is a slow connection that ends its direction, or does not.
type stream struct {
	slow
	closeWrite error
}

func (s *stream) CloseWrite() error { return s.closeWrite }

// The supervisor reads the answer after half a second, or the context ends after a whole one.
func TestAGoodbyeEndsWithTheAnswer(t *testing.T) {
	type row struct {
		half       bool // it is a HalfCloser
		closeWrite error
		before     error // with which the link has ended
		answer     error // nil: none
		want       string
		code       int // of the close frame; 0: there is none
	}
	each(t, noLimit, map[string]row{
		"end of stream":        {true, nil, nil, fmt.Errorf("read: %w", io.EOF), "<nil> after 500ms", 0},
		"another error":        {true, nil, nil, errSecond, "second after 500ms", 0},
		"no answer":            {true, nil, nil, nil, "first after 2s", 0}, // when the connection is closed
		"not sent":             {true, errSecond, nil, nil, "second after 0s", 0},
		"the link has ended":   {true, errSecond, io.ErrNoProgress, nil, io.ErrNoProgress.Error() + " after 0s", 0},
		"a close frame":        {true, fmt.Errorf("close: %w", errors.ErrUnsupported), nil, nil, "<nil> after 0s", 1000},
		"always a close frame": {false, nil, nil, nil, "<nil> after 0s", 1000},
	}, func(t *testing.T, w *world, row row) {
		if row.half {
			w.Begin(&stream{slow{Conn: w.peer}, row.closeWrite}, w.Life(), noLimit)
		}
		if row.before != nil {
			w.EndedBy(row.before)
		}
		if row.answer != nil {
			time.AfterFunc(time.Second/2, func() { w.EndedBy(row.answer); w.End() })
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errFirst)
		defer cancel()
		require.Equal(t, row.want, fmt.Sprint(w.Goodbye(ctx), " after ", w.now()))
		code, _, _ := w.peer.ClosedWith()
		require.Equal(t, row.code, code)
	})
}

// The next session of a rotation gets ready during the goodbye to the old one, which is retired.
func TestGoodbyeOfRetiredLinkEndsWithAnswer(t *testing.T) {
	type row struct {
		answer error // or nil
		want   string
		cross  bool
		unread bool
	}
	each(t, noLimit, map[string]row{
		"answer":        {&conn.CloseError{Code: 1000}, "<nil>", true, false},
		"another code":  {&conn.CloseError{Code: 1001}, "<nil>", true, true},
		"end of stream": {io.EOF, "<nil>", true, false},
		"reset":         {errSecond, errUnanswered.Error(), false, true},
		"no answer":     {nil, errUnanswered.Error(), false, true},
	}, func(t *testing.T, w *world, row row) {
		w.Begin(&starter{Conn: w.peer}, w.Life(), noLimit)
		said := make(chan error)
		go func() { said <- w.Goodbye(context.Background()) }()
		synctest.Wait()
		require.True(t, w.MayHaveEnded())
		w.Retire(errFirst, backoff.ReasonRotated, time.Second)
		if row.answer != nil {
			w.EndedBy(row.answer)
			w.Cut(row.answer) // as the supervisor does when it has read the end
		}
		require.Equal(t, row.want, fmt.Sprint(<-said))
		require.Equal(t, row.cross, w.Crossed())
		w.AwaitParted(context.Background())
		require.Equal(t, row.unread, w.Unread())
	})
}

// half is a connection whose direction cannot be ended alone.
type half struct{ conn.Conn }

func (half) CloseWrite() error { return errors.ErrUnsupported }

// The close handshake takes the place of a half-close that there is not, and gets the whole context.
func TestAGoodbyeWithoutAnAnswerEndsWithItsContext(t *testing.T) {
	for range 100 { // two goroutines may end it at one instant
		inBubble(t, noLimit, func(t *testing.T, w *world) {
			w.peer.Mute()
			w.Begin(half{w.peer}, w.Life(), noLimit)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errFirst)
			defer cancel()
			require.ErrorIs(t, w.Goodbye(ctx), errFirst)
			require.Equal(t, time.Second, w.now())
			require.False(t, w.Lost())
		})
		inBubble(t, noLimit, func(t *testing.T, w *world) {
			w.Begin(half{w.peer}, w.Life(), noLimit)
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errFirst)
			require.ErrorIs(t, w.Goodbye(ctx), errFirst, "over before")
		})
	}
}
