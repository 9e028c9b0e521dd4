package redisgate

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// granted returns a Limiter that asks nobody, and a dial that has just got a permit of that age.
func granted(t *testing.T, age time.Duration) (*Limiter, *waiter) {
	client := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	l, err := New(client, &Options{Key: "venue", Slots: 1})
	require.NoError(t, err)
	l.running = true
	w := &waiter{granted: make(chan permit, 1)}
	w.place = l.line.PushBack(w)
	require.True(t, l.hand(permit{sent: time.Now().Add(-age)}))
	require.Equal(t, 1, l.Status().Held)
	return l, w
}

func TestADialThatIsCanceledAsItIsGrantedKeepsNoSlot(t *testing.T) {
	l, w := granted(t, 0)
	l.leave(w)
	require.Zero(t, l.Status().Held)
}

func TestAPermitThatHasBecomeVoidKeepsNoSlot(t *testing.T) {
	l, w := granted(t, time.Hour)
	require.False(t, l.use(<-w.granted))
	require.Zero(t, l.Status().Held)
}
