package reconnect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// batching opens a Conn whose connections write batches, and holds the first write back: that
// of "first".
func batching(t *testing.T, s *scene, down reconnect.WhenDown) (*reconnect.Conn, *conntest.Fake, *journal) {
	s.fake.Batches = true
	o, told := sending(down)
	c := s.open(o)
	peer := s.wantDial().accept()
	peer.Hold()
	queue(t, c, "first")
	s.wantNoDial()
	return c, peer, told
}

// What has come while a message was being written goes as a batch, of at most 64 messages.
func TestWhatIsQueuedIsWrittenInBatches(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer, told := batching(t, s, reconnect.WhenDownFail)
		want := []string{"first"}
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
		}
		queue(t, c, want[1:]...)
		peer.Release()
		require.Equal(t, strings.Join(want, " "), written(peer))
		require.Equal(t, []int{64, 36}, peer.Batches())
		require.Len(t, told.all(), 101)
		require.Equal(t, uint64(101), c.Stats().Written)
	})
}

// A batch holds little more than 32 KiB, so that one write timeout is enough for it.
func TestABatchOfLargeMessagesIsShort(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer, _ := batching(t, s, reconnect.WhenDownFail)
		large := strings.Repeat("x", 20<<10)
		queue(t, c, large, large, large, large)
		peer.Release()
		written(peer)
		require.Equal(t, []int{2, 2}, peer.Batches())
	})
}

// Promise 6: of a batch that fails, each message has the fate that is its own.
func TestEachMessageOfAFailedBatchHasItsFate(t *testing.T) {
	errReset := errors.New("reset")
	notWritten := fmt.Errorf("%w: %w", conn.ErrNotWritten, errReset)
	for name, c := range map[string]struct {
		down reconnect.WhenDown
		err  error
		told []string
		next string // what the next session writes
	}{
		"kept":          {reconnect.WhenDownKeep, errReset, []string{"first: written 1", "a: written 1", "b: unknown 1", "c: written 2", "d: written 2"}, "c d"},
		"kept, unbegun": {reconnect.WhenDownKeep, notWritten, []string{"first: written 1", "a: written 1", "b: written 2", "c: written 2", "d: written 2"}, "b c d"},
		"not kept":      {reconnect.WhenDownFail, errReset, []string{"first: written 1", "a: written 1", "b: unknown 1", "c: dropped 1", "d: dropped 1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				o, peer, told := batching(t, s, c.down)
				queue(t, o, "a", "b", "c", "d")
				peer.FailWriteAfter(2, c.err)
				peer.Release()
				require.Equal(t, "first a", written(peer))
				next := s.wantDial().accept()
				require.Equal(t, c.next, written(next))
				told.want(t, c.told...)
				for _, r := range told.all() {
					require.Equal(t, r.Fate == reconnect.FateDropped, r.Began.IsZero(), "%s", r.Out.Data)
				}
			})
		})
	}
}

// A message of a batch that the connection refuses costs itself alone, and those behind it keep
// their order.
func TestARefusedMessageLeavesItsBatchBehind(t *testing.T) {
	inVenue(t, nil, func(t *testing.T, v *venue) {
		o, told := sending(reconnect.WhenDownKeep)
		c := v.open(t, o)
		for _, m := range []conn.Message{text("a"), {Data: []byte("bad"), Type: 7}, text("b"), text("c")} {
			require.NoError(t, c.Send(reconnect.Out{Message: m}))
		}
		require.NoError(t, c.Await(t.Context(), reconnect.StateReady))
		told.want(t, "a: written 1", "bad: dropped 1", "b: written 1", "c: written 1")
		require.ErrorIs(t, told.all()[1].Err, conn.ErrBadMessage)
	})
}
