package conn

import "strings"

// compression is permessage-deflate as both sides have agreed on it (RFC 7692, section
// 7.1).
type compression struct {
	takeover bool   // a message of the peer may refer to those before it
	window   []byte // what it may refer to
}

// windowSize is how far back a message may refer.
const windowSize = 32 << 10

// agreed returns the compression that the Sec-WebSocket-Extensions of a 101 response have,
// or nil. coder/websocket lets no other extension pass.
func agreed(extensions []string) *compression {
	all := strings.Join(extensions, ",")
	if all == "" {
		return nil
	}
	return &compression{takeover: !strings.Contains(all, "server_no_context_takeover")}
}

// remember keeps p, which is a part of a message, for later messages that refer to it.
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
