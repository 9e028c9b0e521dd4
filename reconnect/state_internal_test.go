package reconnect

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// A supervisor may notice the end of its session just after the next session has become ready.
func TestAKeeperThatLeadsNoMoreDoesNotChangeTheStatus(t *testing.T) {
	var s state
	var first, next seat
	s.start(new(lifetime), &first)
	s.rotating(&next)
	l := &served{Link: link.Link{Session: 2}}
	next.link.Store(l)
	s.succeed(&next, l, func() {})
	s.enter(&first, StateWaiting, nil)
	require.Equal(t, StateReady, s.now().State)
}

var errLost = errors.New("lost")

// The session before may be lost just when that of the next supervisor begins. The link is then that of
// the session in the status, or [state.now] would look for it for ever.
func TestASupervisorThatInheritsMeanwhileBringsItsLink(t *testing.T) {
	for range 20_000 {
		var s state
		first, next := &seat{}, &seat{}
		s.start(new(lifetime), first)
		l := &served{Link: link.Link{Session: 2}}
		next.link.Store(l)
		s.rotating(next)
		var begun atomic.Bool
		var opening sync.WaitGroup
		opening.Go(func() {
			begun.Store(true)
			s.opening(next, l, func() {})
		})
		for !begun.Load() {
			runtime.Gosched()
		}
		s.inherit(next, errLost, backoff.ClassRetry)
		opening.Wait()
		s.setReady(next, l)
		require.Same(t, l, s.link.Load())
	}
}
