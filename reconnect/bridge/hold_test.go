package bridge_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/bridge"
)

func TestTheOldestOfWhatIsHeldIsFetchedInstead(t *testing.T) {
	p := &store{last: 9, takes: time.Second}
	withStore(t, p, &options{Messages: 2}, func(s *scene) {
		s.live("a", 7, 8, 9, 10)
		require.Equal(t, uint64(2), s.b.Stats().Dropped)
		require.Equal(t, 2, s.b.Stats().Held)
		time.Sleep(time.Second)
		s.want("a: stale 6-6", "a: past 6", "a: past 7", "a: past 8", "a: live 9", "a: live 10", "a: healed 10")
		require.Zero(t, s.b.Stats().Held)
	})
}

// What finds no room shows nevertheless that something is missing.
func TestAPageThatFindsNoRoomHealsNothing(t *testing.T) {
	p := &store{}
	full := true
	o := &options{Messages: 1, Policy: oneSecond, Timeout: time.Hour, Past: func(ctx context.Context, r bridge.Request[string]) ([]item, error) {
		if r.Key == "b" { // its live message takes the room
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		if full {
			return []item{{Last: 7}}, io.EOF // without 6
		}
		return []item{{Last: 6}, {Last: 7}}, io.EOF
	}}
	inScene(t, o, func(s *scene) {
		p.s = s
		s.live("b", 1, 3)
		s.live("a", 5)
		s.want("b: live 1", "b: stale 2-2", "a: live 5")
		s.b.Refetch("a", 0)
		s.want("a: stale 6-")
		s.set(func() { full = false })
		time.Sleep(time.Second)
		s.want("a: past 6", "a: past 7", "a: healed 7")
	})
}

func TestForgetMakesRoom(t *testing.T) {
	p := &store{last: 7, errs: []error{errFetch, errFetch}}
	withStore(t, p, &options{Policy: oneSecond, Messages: 1}, func(s *scene) {
		s.live("a", 7)
		s.b.Forget("a")
		require.Zero(t, s.b.Stats().Held)
		s.live("b", 1, 3)
		s.want("a: stale 6-6", "b: live 1", "b: stale 2-2")
		require.Equal(t, 1, s.b.Stats().Held)
		require.Zero(t, s.b.Stats().Dropped)
	})
}

// The snapshot in flight may be older than a message for which there was no room.
func TestAMessageWithoutANumberThatFindsNoRoomNeedsAnotherSnapshot(t *testing.T) {
	p := &store{takes: time.Second}
	inScene(t, &options{Snapshot: p.snapshot, Messages: 1}, func(s *scene) {
		p.s = s
		s.live("a", 0, 0)
		require.Equal(t, uint64(1), s.b.Stats().Dropped)
		time.Sleep(time.Second)
		s.want("a: stale 1-", "a: snapshot 0", "a: live 0")
		time.Sleep(time.Second)
		s.want("a: snapshot 0", "a: healed 0")
		s.wantAsked("a snapshot", "a snapshot")
	})
}
