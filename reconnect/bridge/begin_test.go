package bridge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
