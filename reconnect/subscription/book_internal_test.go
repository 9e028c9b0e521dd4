package subscription

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// A key that is added and removed again and again before its request can be made takes no memory.
func TestAKeyThatIsRemovedBeforeItsRequestLeavesTheQueue(t *testing.T) {
	s, err := New(&Options[int]{
		Encode:    func(*Request[int]) (conn.Message, error) { return conn.Message{}, nil },
		NoAnswers: true,
	})
	require.NoError(t, err)
	b := newBook(s, 1, 0) // not ready, so that nothing is sent
	s.books = append(s.books, b)
	s.Add(-3, -2, -1)
	for i := range 10_000 {
		s.Add(0, i)
		s.Remove(0, i)
		require.Equal(t, 3, b.todo.Len())
	}
	require.Len(t, s.entries, 3)
	r := b.next(true)
	require.Equal(t, []int{-3, -2, -1}, r.Keys)
	require.Nil(t, b.todo.list)
}

// A venue may name a key twice in one answer, for instance because two of its channels are one key of ours. The other
// keys of the request go on waiting for their answer.
func TestAnAnswerThatNamesAKeyTwiceSettlesItOnce(t *testing.T) {
	for name, test := range map[string]struct {
		keys     []string
		inflight int
		b        State
	}{
		"one of two": {[]string{"A", "A"}, 1, StateAsked},
		"both":       {[]string{"A", "A", "B"}, 0, StateHeld},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(&Options[string]{
				Encode: func(r *Request[string]) (conn.Message, error) { return conn.TextMessage(r.ID), nil },
				Answer: func(reconnect.Message) (Answer[string], bool) { return Answer[string]{}, false },
			})
			require.NoError(t, err)
			s.Add("A", "B")
			s.mu.Lock()
			b := newBook(s, 1, 0)
			b.ready, b.working = true, true // without its worker
			s.books = append(s.books, b)
			r := b.next(true)
			r.state = phaseWritten
			s.answer(1, &Answer[string]{ID: r.ID, Keys: test.keys})
			inflight := len(b.flow.list)
			s.mu.Unlock()
			require.Equal(t, test.inflight, inflight)
			require.Equal(t, StateHeld, s.State("A"))
			require.Equal(t, test.b, s.State("B"))
		})
	}
}

// Until then the request is not made again and again.
func TestARequestThatTheConnDoesNotTakeIsMadeAgainASecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(&Options[int]{
			Encode:    func(*Request[int]) (conn.Message, error) { return conn.Message{}, nil },
			NoAnswers: true,
		})
		require.NoError(t, err)
		s.Add(1)
		b := newBook(s, 1, 0)
		s.books = append(s.books, b)
		r := b.next(true)
		require.NoError(t, b.wrote(r, &reconnect.WriteError{Fate: reconnect.FateDropped, Err: reconnect.ErrNotReady}))
		r.cancel()
		again, until, done := b.step(time.Now())
		require.Nil(t, again)
		require.Equal(t, time.Now().Add(time.Second), until)
		require.False(t, done)
		time.Sleep(time.Second)
		again, _, _ = b.step(time.Now())
		require.NotNil(t, again)
		again.cancel()
		require.Equal(t, []int{1}, again.Keys)
	})
}
