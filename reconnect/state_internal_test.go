package reconnect

import (
	"testing"

	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/stretchr/testify/require"
)

// A supervisor may notice the end of its session just after the next session has become ready.
func TestAKeeperThatLeadsNoMoreDoesNotChangeTheStatus(t *testing.T) {
	var s state
	var first, next seat
	s.start(&first)
	s.rotating(&next)
	l := &served{Link: link.Link{Session: 2}}
	next.link.Store(l)
	s.succeed(&next, l, func() {})
	s.enter(&first, StateWaiting, nil)
	require.Equal(t, StateReady, s.now().State)
}
