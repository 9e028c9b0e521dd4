package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// withLateFlusher runs a test with an outbox that has a message with a key. Its flusher was started a second ago, and has
// not begun: a processor with much to do may take long.
func withLateFlusher(t *testing.T, age time.Duration, test func(t *testing.T, q *Outbox)) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{
			Limits: queue.Limits{Messages: 10, Bytes: 100, Full: queue.ReplaceKey}, Age: age, Down: Keep,
			Receipt: func(*Receipt) {},
			Await:   func(done <-chan struct{}, _ string) { <-done },
		}, new(link.Life), nil, nil, 0, false)
		require.NoError(t, q.Accept(&Outgoing{Message: conn.TextMessage("a"), Key: "key"}))
		q.came = time.Now()
		time.Sleep(time.Second)
		test(t, q)
		q.End()
	})
}

// A message that is too late is refused, and replaces no other.
func TestAMessageThatIsTooLateIsRefusedThoughTheFlusherBeginsLate(t *testing.T) {
	withLateFlusher(t, -1, func(t *testing.T, q *Outbox) {
		require.Equal(t, ErrExpired, q.Accept(&Outgoing{Message: conn.TextMessage("b"), Key: "key", Deadline: time.Now()}))
		synctest.Wait()
		require.Zero(t, q.reporter.done.Load())
	})
}

// A short age counts from the Send.
func TestAShortAgeIsNotShorterThoughTheFlusherBeginsLate(t *testing.T) {
	withLateFlusher(t, 2*time.Second, func(t *testing.T, q *Outbox) {
		require.NoError(t, q.Accept(&Outgoing{Message: conn.TextMessage("b")}))
		time.Sleep(2*time.Second - 1)
		synctest.Wait()
		require.EqualValues(t, 1, q.reporter.done.Load(), "that of the message before")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.EqualValues(t, 2, q.reporter.done.Load())
	})
}
