package redisgate

import (
	"container/list"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// idle returns a Limiter that asks no server.
func idle(t *testing.T, o Options) *Limiter {
	client := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	o.Key = "venue"
	l, err := New(client, &o)
	require.NoError(t, err)
	l.running = true
	return l
}

// granted returns a Limiter, and the place in line of a dial that has just got a permit of that age.
func granted(t *testing.T, age time.Duration) (*Limiter, *list.Element) {
	l := idle(t, Options{Slots: 1})
	place, err := l.join(l.line.PushBack)
	require.NoError(t, err)
	require.True(t, l.hand(permit{sent: time.Now().Add(-age)}))
	require.Equal(t, 1, l.Status().Held)
	return l, place
}

func TestADialThatIsCanceledAsItIsGrantedKeepsNoSlot(t *testing.T) {
	l, place := granted(t, 0)
	l.leave(place)
	require.Zero(t, l.Status().Held)
}

func TestAPermitThatHasBecomeVoidKeepsNoSlot(t *testing.T) {
	l, place := granted(t, time.Hour)
	require.False(t, l.use(<-place.Value.(chan permit)))
	require.Zero(t, l.Status().Held)
}

// Redis was back, and may have let dials of other processes begin, when it went away again.
func TestAWindowPassesAfterASecondOutageToo(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for again, want := range map[int]int{
		11: 1,  // before it let any dial begin: the share counts since the first outage
		13: 14, // it may have
	} {
		l := idle(t, Options{Rate: budget.Window{N: 1, Per: 900 * time.Millisecond}, Slack: 100 * time.Millisecond})
		_, err := l.join(l.line.PushBack)
		require.NoError(t, err)
		l.suspend(at(0), io.EOF, time.Time{})
		l.suspend(at(10), nil, at(12))
		next := l.serveShare(at(10))
		require.Equal(t, 1, l.line.Len(), "Redis is back")
		require.Equal(t, at(10).Add(time.Hour), next)
		l.suspend(at(again), io.EOF, time.Time{})
		require.Equal(t, at(want), l.talk.from)
		l.serveShare(at(again))
		require.Equal(t, want < again, l.line.Len() == 0)
	}
}
