//go:build !js

package conn

var _ Follower = (*WebSocket)(nil)

// ReadWhole implements [Follower].
func (c *WebSocket) ReadWhole(buf []byte) (m Message, more, whole bool) {
	s, turn := c.wire.stream, &c.wire.reads
	if c.wire.ended() != nil || !turn.begin() {
		return m, false, false
	}
	s.by = byReadWhole
	for {
		if m, whole = c.atHand(buf, nil); whole {
			s.finish(len(s.win) > 0)
			break
		}
		if !c.comesWhole() || s.more(buf[:cap(buf)]) != nil {
			break
		}
	}
	s.by = byRead
	if !whole {
		s.pause()
	}
	more = len(s.win) > 0
	turn.end()
	return m, more, whole
}

// comesWhole reports whether what has come of the next frame may become a message for atHand.
func (c *WebSocket) comesWhole() bool {
	win := c.wire.stream.win
	head, n := plainFrame(win)
	return head == 0 || head > 0 && n <= min(c.limit, wholeSize) && head+n > len(win)
}

// wholeSize is the largest payload that fits into a buffer for bursts with its header of 4 bytes.
const wholeSize = aheadSize - 4

// Wake implements [Follower].
func (c *WebSocket) Wake() { c.wire.wake() }

// Woken implements [Follower].
func (c *WebSocket) Woken() bool { return c.wire.woken.Load() }
