package redisgate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Redis was back, and may have let dials of other processes begin, when it went away again.
func TestAWindowPassesAfterASecondOutageToo(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	for again, want := range map[int]int{
		11: 1,  // before it let any dial begin: the share counts since the first outage
		13: 14, // it may have
	} {
		m := mode{window: time.Second}
		m.failed(at(0))
		m.answered(at(10), at(10), 2*time.Second, false)
		ok, next := m.share(at(10))
		require.False(t, ok, "Redis is back")
		require.Zero(t, next)
		m.failed(at(again))
		require.Equal(t, at(want), m.from)
		ok, _ = m.share(at(again))
		require.Equal(t, want < again, ok)
	}
}
