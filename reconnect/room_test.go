package reconnect_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

func blob(size int) conn.Message { return conn.Message{Type: conn.Binary, Data: make([]byte, size)} }

// Promise 10: what was read makes room again, in bytes as well.
func TestWhatWasReadMakesRoomInBytes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Bytes: 100})
		peer.Deliver(blob(60), blob(60), blob(60), blob(60))
		synctest.Wait()
		for received := uint64(2); received <= 4; received++ {
			require.Equal(t, received, c.Stats().Received)
			_, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			synctest.Wait()
		}
	})
}

// Promise 10.
func TestTheOldestBytesAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, peer := readInbox(t, s, reconnect.Inbox{Bytes: 100, Overflow: reconnect.OverflowDropOldest})
		peer.Deliver(blob(40), blob(40), blob(40), blob(20))
		synctest.Wait()
		require.Equal(t, 1, wantSeam(t, c).Dropped)
		for _, size := range []int{40, 40, 20} {
			m, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, m.Data, size)
		}
	})
}

// A single message may be larger than the inbox.
func TestAMessageLargerThanTheInboxIsKept(t *testing.T) {
	for _, full := range []reconnect.Overflow{reconnect.OverflowBlock, reconnect.OverflowDropOldest, reconnect.OverflowDisconnect} {
		inBubble(t, func(t *testing.T, s *scene) {
			c, peer := readInbox(t, s, reconnect.Inbox{Bytes: 100, Overflow: full})
			peer.Deliver(blob(200))
			synctest.Wait()
			m, err := c.Read(t.Context(), nil)
			require.NoError(t, err)
			require.Len(t, m.Data, 200)
		})
	}
}
