package terminal

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

func TestTheStateHasOneWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waiting := func(d time.Duration) string {
			return State(reconnect.Status{State: reconnect.StateWaiting, Next: time.Now().Add(d)})
		}
		require.Equal(t, "             ready", State(reconnect.Status{State: reconnect.StateReady}))
		require.Equal(t, "   next try in 3 s", waiting(2500*time.Millisecond))
		require.Equal(t, "next try in 3610 s", waiting(time.Hour+10*time.Second), "the longest: a server may ask for an hour")
		require.Equal(t, "   next try in 1 s", waiting(0), "there is no try in 0 s")
	})
}
