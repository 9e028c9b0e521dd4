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
	calls := 0
	o := &options{Messages: 1, Policy: oneSecond, Timeout: time.Hour, Past: func(ctx context.Context, r bridge.Request[string]) ([]item, error) {
		if r.Key == "b" { // its live message takes the room
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		calls++
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
		s.set(func() {
			require.Equal(t, 1, calls, "the page has brought nothing new")
			full = false
		})
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

func TestHeldMessagesAreOrderedAndHeldOnce(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.live("a", 13, 12, 12, 13)
		s.send(item{Key: "a", First: 8, Last: 10})
		s.live("a", 9, 10)
		s.send(item{Key: "a", First: 8, Last: 9})
		require.Equal(t, 3, s.b.Stats().Held)
		s.send(item{Key: "a", First: 8, Last: 11}) // has more, so that the shorter one is not needed
		time.Sleep(time.Second)
		s.want("a: stale 6-12", "a: past 6", "a: past 7", "a: live 11", "a: live 12", "a: live 13", "a: healed 13")
	})
}

func TestLongerHeldMessageReplacesShorterOne(t *testing.T) {
	p := &store{last: 7, takes: time.Second}
	withStore(t, p, &options{}, func(s *scene) {
		s.live("a", 9)
		s.send(item{Key: "a", First: 9, Last: 10})
		time.Sleep(time.Second)
		s.set(func() { p.last = 8 })
		time.Sleep(time.Minute)
		s.want("a: stale 6-8", "a: past 6", "a: past 7", "a: past 8", "a: live 10", "a: healed 10")
	})
}

func TestReleasedBytesMakeRoom(t *testing.T) {
	p := &store{last: 6, takes: time.Second}
	withStore(t, p, &options{Bytes: 2 * len(`a "" 0 7`)}, func(s *scene) {
		s.live("a", 7, 8)
		time.Sleep(time.Second)
		s.want("a: stale 6-6", "a: past 6", "a: live 7", "a: live 8", "a: healed 8")
		s.live("b", 1, 3, 4)
		require.Equal(t, 2, s.b.Stats().Held)
		require.Zero(t, s.b.Stats().Dropped)
	})
}

// Each page ends before the first held number, and is held until one meets the cursor.
func TestPagesFromNewestToOldestMeetCursor(t *testing.T) {
	var before []uint64
	past := func(_ context.Context, r bridge.Request[string]) (page []item, err error) {
		before = append(before, r.Before)
		for n := r.Before - 2; n < r.Before; n++ {
			page = append(page, item{Last: n})
		}
		return page, nil
	}
	withStore(t, &store{}, &options{Past: past, Snapshot: refuse}, func(s *scene) {
		s.live("a", 10)
		s.want("a: stale 6-9", "a: past 6", "a: past 7", "a: past 8", "a: past 9", "a: live 10", "a: healed 10")
		require.Equal(t, []uint64{10, 8}, before)
	})
}

// The server does not have 6. What it has is held already, so that it is not called again immediately.
func TestPageOfHeldNumbersIsNotNew(t *testing.T) {
	calls := 0
	past := func(context.Context, bridge.Request[string]) ([]item, error) {
		calls++
		return []item{{Last: 7}}, nil
	}
	withStore(t, &store{}, &options{Past: past, Snapshot: refuse, Policy: oneSecond}, func(s *scene) {
		s.live("a", 8)
		s.want("a: stale 6-7")
		require.Equal(t, 2, calls)
	})
}

// Each live message takes the room of what the last page has brought. After Options.Messages pages without
// progress the past counts as gone.
func TestPagesWithoutProgressEnd(t *testing.T) {
	past := func(context.Context, bridge.Request[string]) ([]item, error) {
		time.Sleep(time.Second)
		return []item{{Last: 7}}, nil
	}
	o := &options{Past: past, Messages: 2, Bytes: len(`a "" 0 100`), Patience: -1}
	inScene(t, o, func(s *scene) {
		s.send(item{Key: "a", Last: 5, Snapshot: true})
		s.live("a", 100)
		time.Sleep(500 * time.Millisecond)
		for n := range uint64(3) {
			s.live("a", 101+n)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		s.want("a: snapshot 5", "a: stale 6-99", "a: lost 6-6", "a: past 7",
			"a: lost 8-102", "a: live 103", "a: healed 103")
		require.Equal(t, uint64(3), s.b.Stats().Dropped, "live messages")
	})
}

// Another stream has the room.
func TestLiveMessageWithoutRoomIsFetched(t *testing.T) {
	p := &store{last: 9, takes: time.Second}
	withStore(t, p, &options{Messages: 1}, func(s *scene) {
		s.live("b", 1, 3)
		s.live("a", 7)
		require.Equal(t, uint64(1), s.b.Stats().Dropped)
		s.want("b: live 1", "b: stale 2-2", "a: stale 6-6")
		s.b.Forget("b")
		time.Sleep(time.Second)
		s.want("a: past 6", "a: past 7", "a: past 8", "a: past 9", "a: healed 9")
	})
}

func TestOneMessageMayExceedBytes(t *testing.T) {
	withStore(t, &store{takes: time.Second}, &options{Bytes: 1}, func(s *scene) {
		s.live("a", 7)
		require.Equal(t, 1, s.b.Stats().Held)
	})
}

// The numbers are lost from the beginning of the stream, and the last of them found no room.
func TestStreamContinuesAfterLostBeginning(t *testing.T) {
	past := func(ctx context.Context, r bridge.Request[string]) ([]item, error) {
		if r.Key == "full" {
			<-ctx.Done()
		}
		return nil, bridge.ErrTooOld
	}
	inScene(t, &options{Past: past, Messages: 1, Timeout: time.Hour}, func(s *scene) {
		s.live("full", 1, 3)
		require.NoError(t, s.b.Follow("a", bridge.Cursor{}))
		s.live("a", 3)
		s.want("full: live 1", "full: stale 2-2", "a: stale 1-", "a: lost 1-3", "a: healed 3")
		s.live("a", 5)
		s.want("a: stale 4-4", "a: lost 4-5", "a: healed 5")
	})
}

// Nothing is held, because another stream has the room.
func TestSnapshotMustReachMessageWithoutRoom(t *testing.T) {
	last := uint64(7)
	snapshot := func(ctx context.Context, key string) (item, error) {
		if key == "full" {
			<-ctx.Done()
			return item{}, ctx.Err()
		}
		last++
		return item{Last: last}, nil
	}
	o := &options{Snapshot: snapshot, Messages: 1, Timeout: time.Hour, Policy: oneSecond}
	withStore(t, &store{}, o, func(s *scene) {
		s.live("full", 1)
		s.live("a", 9)
		s.want("full: stale 1-", "a: stale 6-8")
		time.Sleep(time.Second)
		s.want("a: snapshot 9", "a: healed 9")
	})
}

func TestHeldMessagesWithoutNumbersKeepTheirOrder(t *testing.T) {
	p := &store{takes: time.Second}
	inScene(t, &options{Snapshot: p.snapshot}, func(s *scene) {
		p.s = s
		s.send(item{Key: "a", Epoch: "1st"})
		s.send(item{Key: "a", Epoch: "2nd"})
		time.Sleep(time.Second)
		s.want("a: stale 1-", "a: snapshot 0", "a: live 0@1st", "a: live 0@2nd", "a: healed 0")
	})
}

func TestPageDoesNotReplaceHeldMessages(t *testing.T) {
	pages := [][]item{{{Last: 7}}, {{Last: 6}, {Last: 7}, {Last: 8}}}
	past := func(context.Context, bridge.Request[string]) (page []item, err error) {
		time.Sleep(time.Second)
		page, pages = pages[0], pages[1:]
		return page, nil
	}
	withStore(t, &store{}, &options{Past: past, Snapshot: refuse, Messages: 2, Policy: oneSecond}, func(s *scene) {
		s.live("a", 9, 10)
		time.Sleep(3 * time.Second)
		s.want("a: stale 6-8", "a: past 6", "a: past 7", "a: past 8", "a: live 9", "a: live 10", "a: healed 10")
	})
}
