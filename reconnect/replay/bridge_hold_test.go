package replay_test

import (
	"cmp"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/replay"
)

func TestTheOldestOfWhatIsHeldIsFetchedInstead(t *testing.T) {
	p := &store{last: 9, takes: time.Second}
	withStore(t, p, &options{Messages: 2}, func(s *scene) {
		s.live("a", 7, 8, 9, 10)
		require.Equal(t, uint64(2), s.b.Stats().Dropped)
		require.Equal(t, 2, s.b.Stats().Held)
		time.Sleep(time.Second)
		s.want("a: stale 6-6", "a: past 6", "a: past 7", "a: past 8", "a: live 9", "a: live 10", "a: healed 10")
		require.Zero(t, s.b.Stats().HeldBytes)
	})
}

func TestAFullHoldCanBlock(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{Messages: 1, Full: replay.HoldBlock}, func(s *scene) {
		s.live("a", 7)
		select {
		case s.source.next <- errClosed:
			t.Fatal("it has read")
		case <-time.After(time.Second - 1):
		}
		s.live("a", 8)
		s.want("a: stale 6-6", "a: past 6", "a: live 7", "a: healed 7", "a: live 8")
	})
}

// What finds no room shows nevertheless that something is missing.
func TestAPageThatFindsNoRoomHealsNothing(t *testing.T) {
	p := &store{}
	full := true
	o := &options{Messages: 1, Policy: oneSecond, Timeout: time.Hour, Past: func(ctx context.Context, r replay.Request[string]) ([]item, error) {
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

// The Conn ends while so much is held that nothing is read.
func TestALoopThatIsBlockedLearnsThatTheSourceHasEnded(t *testing.T) {
	p := &store{last: 7, errs: []error{errFetch}}
	withStore(t, p, &options{Policy: oneSecond, Messages: 1, Full: replay.HoldBlock}, func(s *scene) {
		s.live("a", 7)
		s.want("a: stale 6-6")
		s.source.state, s.source.over = reconnect.StateClosed, errClosed
		require.Equal(t, 1, s.b.Stats().Held) // whose lock makes the new state visible to the loop
		close(s.source.ready)
		go func() { s.source.next <- errClosed }() // Read takes it
		require.ErrorIs(t, <-s.ended, errClosed)
		s.ended <- nil
	})
}

// The next session delivers something before it is ready, and so it waits for room. The fetch that
// makes room must not wait for that session.
func TestAFetchThatMakesRoomWaitsForNoSession(t *testing.T) {
	p := &store{last: 7, errs: []error{errFetch, errFetch}}
	withStore(t, p, &options{Policy: oneSecond, Messages: 1, Full: replay.HoldBlock}, func(s *scene) {
		s.live("a", 7)
		s.want("a: stale 6-6")
		s.source.state = reconnect.StateConnecting
		require.Equal(t, 1, s.b.Stats().Held) // whose lock makes the new state visible to the loop
		time.Sleep(2 * time.Second)
		s.want("a: past 6", "a: live 7", "a: healed 7")
	})
}

// Streams may be subscribed just before a session is ready. A fetch before that may miss something, so
// there is another one then, unless live messages vouch for the stream. What holds nothing waits.
func TestAFetchBeforeASessionIsReadyIsNotTheLast(t *testing.T) {
	p := &store{last: 8, errs: []error{errFetch}}
	past := func(ctx context.Context, r replay.Request[string]) ([]item, error) {
		page, err := p.past(ctx, r)
		return page, cmp.Or(err, io.EOF)
	}
	inScene(t, &options{Past: past, Policy: oneSecond, Messages: 2, Full: replay.HoldBlock, Fetches: 1}, func(s *scene) {
		p.s = s
		s.live("c", 9)
		s.live("b", 6)
		s.live("a", 5, 7)
		s.want("c: live 9", "b: live 6", "a: live 5", "a: stale 6-6")
		s.down()
		s.wantAsked("a after 5")
		time.Sleep(time.Hour)
		s.want("c: stale 10-", "b: stale 7-")
		s.wantAsked()
		s.live("b", 8) // before the session is ready
		s.wantAsked("a after 5")
		s.want("a: past 6", "a: live 7", "a: past 8")
		s.live("b", 9)
		s.wantAsked("b after 6")
		s.want("b: past 7", "b: live 8", "b: live 9", "b: healed 9")
		time.Sleep(time.Hour)
		s.wantAsked()
		s.set(func() { p.last = 9 })
		s.up()
		s.want("c: healed 9", "a: past 9", "a: healed 9")
	})
}

// The same holds if that fetch finds the past too old.
func TestAFetchBeforeASessionIsReadyIsNotTheLastIfItIsTooOld(t *testing.T) {
	p := &store{from: 7, last: 7, errs: []error{errFetch}}
	withStore(t, p, &options{Policy: oneSecond, Messages: 2, Full: replay.HoldBlock, Fetches: 1}, func(s *scene) {
		s.live("b", 8)
		s.live("a", 7)
		s.want("b: live 8", "a: stale 6-6")
		s.down()
		s.live("b", 10) // before the session is ready
		time.Sleep(time.Hour)
		s.want("b: stale 9-", "a: lost 6-6", "a: live 7")
		s.set(func() { p.last = 9 })
		s.up()
		s.want("b: past 9", "b: live 10", "b: healed 10", "a: past 8", "a: past 9", "a: healed 9")
	})
}

func TestForgetMakesRoom(t *testing.T) {
	p := &store{last: 7, errs: []error{errFetch}}
	policy := *oneSecond
	policy.Base, policy.Cap = time.Hour, time.Hour
	withStore(t, p, &options{Policy: &policy, Messages: 1, Full: replay.HoldBlock}, func(s *scene) {
		s.live("a", 7)
		start := time.Now()
		s.b.Forget("a")
		s.live("b", 1)
		s.want("a: stale 6-6", "b: live 1")
		require.Zero(t, time.Since(start), "it did not wait for the next fetch")
		require.Zero(t, s.b.Stats().Held)
	})
}
