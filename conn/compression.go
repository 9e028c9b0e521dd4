package conn

import "strings"

// compression is permessage-deflate as the peers of a connection have agreed on it,
// RFC 7692 7.1.
type compression struct {
	takeover bool   // a message of the peer may refer to those before it
	window   []byte // what it may refer to
}

// windowSize is how far back a message may refer.
const windowSize = 32 << 10

// agreed returns what the Sec-WebSocket-Extensions of a 101 response say. No other
// extension gets past coder/websocket.
func agreed(extensions []string) *compression {
	all := strings.Join(extensions, ",")
	if all == "" {
		return nil
	}
	return &compression{takeover: !strings.Contains(all, "server_no_context_takeover")}
}

// remember keeps what a message has said for those that refer to it.
func (c *compression) remember(p []byte) {
	if !c.takeover {
		return
	}
	p = p[max(0, len(p)-windowSize):]
	if over := len(c.window) + len(p) - windowSize; over > 0 {
		c.window = c.window[:copy(c.window, c.window[over:])]
	}
	c.window = append(roomFor(c.window, len(p), windowSize), p...)
}
