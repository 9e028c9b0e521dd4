package bridge_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// These tests are about the first snapshot of a stream without numbers.

func TestUnnumberedStreamBeginsWithFetchedSnapshot(t *testing.T) {
	p := &store{takes: time.Second}
	inScene(t, &options{Snapshot: p.snapshot}, func(s *scene) {
		p.s = s
		s.live("a", 0, 0)
		s.want("a: stale 1-")
		time.Sleep(time.Second)
		s.want("a: snapshot 0", "a: live 0", "a: live 0", "a: healed 0")
		s.live("a", 0)
		s.want("a: live 0")
		s.wantAsked("a snapshot")
	})
}

// The subscription may send the snapshot without a request. If it does not, Ask requests it.
func TestUnnumberedStreamBeginsWithRequestedSnapshot(t *testing.T) {
	p := &store{}
	inScene(t, &options{Ask: p.ask, Timeout: 10 * time.Second}, func(s *scene) {
		p.s = s
		s.live("a", 0)
		time.Sleep(9 * time.Second)
		s.wantAsked()
		time.Sleep(time.Second)
		s.wantAsked("a asked")
		s.want("a: stale 1-")
		s.send(item{Key: "a", Snapshot: true})
		s.live("a", 0)
		s.want("a: snapshot 0", "a: live 0", "a: healed 0", "a: live 0")
	})
}

func TestUnnumberedStreamContinuesWithoutSnapshotAfterPermanentError(t *testing.T) {
	inScene(t, &options{Snapshot: refuse}, func(s *scene) {
		s.live("a", 0)
		s.live("a", 0)
		s.want("a: stale 1-", "a: lost 0-", "a: live 0", "a: healed 0", "a: live 0")
		require.Zero(t, s.b.Stats().Stale)
		s.live("a", 3)
		s.want("a: stale 1-", "a: lost 1-2", "a: live 3", "a: healed 3")
	})
}

func TestUnnumberedStreamWithoutSnapshotsBeginsWithItsFirstMessage(t *testing.T) {
	inScene(t, &options{}, func(s *scene) {
		s.live("a", 0)
		s.want("a: live 0")
	})
}

// A message of the connection itself, such as a notice, may come before the first number.
func TestNumberedStreamWhoseFirstMessageHasNoNumber(t *testing.T) {
	p := &store{last: 5, takes: time.Second}
	inScene(t, &options{Snapshot: p.snapshot, Past: p.past}, func(s *scene) {
		p.s = s
		s.live("a", 0, 6)
		time.Sleep(time.Second)
		s.want("a: stale 1-", "a: snapshot 5", "a: live 0", "a: live 6", "a: healed 6")
		s.live("a", 0, 7)
		s.want("a: live 0", "a: live 7")
		s.wantAsked("a snapshot")
		require.Equal(t, bridge.Stats{Streams: 1, Fetches: 1}, s.b.Stats())
	})
}

// The snapshot of a stream that has not begun has the number 0, and the number 1 follows it.
func TestSnapshotOfEmptyStreamIsFollowedByNumberOne(t *testing.T) {
	p := &store{takes: time.Second}
	inScene(t, &options{Snapshot: p.snapshot}, func(s *scene) {
		p.s = s
		s.live("a", 1, 2)
		time.Sleep(time.Second)
		s.want("a: stale 1-", "a: snapshot 0", "a: live 1", "a: live 2", "a: healed 2")
		s.live("a", 3)
		s.want("a: live 3")
		s.wantAsked("a snapshot")
	})
}

func TestMessageWithoutNumberBeforeLostNumbersIsKept(t *testing.T) {
	snapshot := func(ctx context.Context, key string) (item, error) {
		time.Sleep(time.Second)
		return refuse(ctx, key)
	}
	inScene(t, &options{Snapshot: snapshot}, func(s *scene) {
		s.live("a", 0, 6)
		time.Sleep(time.Second)
		s.want("a: stale 1-", "a: lost 1-5", "a: live 0", "a: live 6", "a: healed 6")
	})
}

// Without numbers there is no cursor from which Past could continue.
func TestUnnumberedStreamNeedsSnapshotAfterRefusedOne(t *testing.T) {
	p := &store{errs: []error{backoff.Permanent(errFetch)}}
	inScene(t, &options{Snapshot: p.snapshot, Past: p.past}, func(s *scene) {
		p.s = s
		s.live("a", 0)
		s.want("a: stale 1-", "a: lost 0-", "a: live 0", "a: healed 0")
		s.seam(reconnect.Seam{Lost: 1})
		s.want("a: stale 1-", "a: snapshot 0", "a: healed 0")
		s.wantAsked("a snapshot", "a snapshot")
	})
}

// The stream has begun with an epoch that has ended, and it still needs a snapshot.
func TestStreamBeginsWithSnapshotAfterNewEpoch(t *testing.T) {
	p := &store{epoch: "z", last: 2, takes: time.Second, errs: []error{errFetch}}
	inScene(t, &options{Snapshot: p.snapshot, Past: p.past, Policy: oneSecond}, func(s *scene) {
		p.s = s
		s.send(item{Key: "a", Epoch: "y", Last: 1})
		s.send(item{Key: "a", Epoch: "z", Last: 3})
		time.Sleep(3 * time.Second)
		s.want("a: stale 1-", "a: snapshot 2@z", "a: live 3@z", "a: healed 3@z")
		s.wantAsked("a snapshot", "a snapshot")
	})
}

func TestFirstNumberDoesNotPostponeAsk(t *testing.T) {
	p := &store{}
	inScene(t, &options{Ask: p.ask, Timeout: 10 * time.Second}, func(s *scene) {
		p.s = s
		require.NoError(t, s.b.Follow("a", bridge.Cursor{}))
		s.wantAsked("a asked")
		time.Sleep(5 * time.Second)
		s.live("a", 3)
		time.Sleep(5 * time.Second)
		s.wantAsked("a asked")
	})
}
