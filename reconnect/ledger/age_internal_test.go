package ledger

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

func plain(e Entry) (conn.Message, error) { return conn.BinaryMessage(e.Data), nil }

// A clock that is set back holds no message longer than its age after the next Add.
func TestAClockThatIsSetBackDelaysNoExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(&Options{Age: time.Hour, Encode: plain})
		require.NoError(t, err)
		_, err = l.Add(nil)
		require.NoError(t, err)
		l.queue.first().added += int64(365 * 24 * time.Hour) // as if the clock had been a year ahead
		_, err = l.Add(nil)
		require.NoError(t, err)
		require.NoError(t, l.start(new(reconnect.Conn)))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, uint64(2), l.Stats().Outcomes[OutcomeExpired])
		l.end(context.Canceled)
	})
}

// A timer stands still while the machine sleeps. What has become too old is not sent after that.
func TestNothingIsSentThatBecameTooOldInASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done []Outcome
		l, err := New(&Options{Age: time.Hour, Encode: plain, OnDone: func(r Settled) { done = append(done, r.Outcome) }})
		require.NoError(t, err)
		fake, awake := conntest.NewFake(nil), make(chan struct{})
		c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
			<-awake
			return fake.Conn(), nil
		}), &reconnect.Options{Layers: []*reconnect.Layer{l.Layer()}})
		require.NoError(t, err)
		for range 2 {
			_, err = l.Add([]byte("x"))
			require.NoError(t, err)
		}
		l.queue.first().added -= int64(time.Hour)
		close(awake)
		synctest.Wait()
		require.Len(t, fake.Written(), 1)
		require.Equal(t, []Outcome{OutcomeExpired}, done)
		c.Close()
		<-c.Done()
	})
}
