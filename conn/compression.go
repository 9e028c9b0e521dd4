package conn

import (
	"compress/flate"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// compression is permessage-deflate as both sides have agreed on it (RFC 7692, section
// 7.1).
type compression struct {
	takeover bool   // a message of the peer may refer to those before it
	reach    int    // how far back, in bytes
	window   []byte // what it may refer to

	keeps  bool          // our messages may refer to those before them
	writer *flate.Writer // then it is kept; it belongs to the goroutine that has the turn to write
	out    target        // where writer writes
}

// target is a writer that stays while what is behind it changes.
type target struct{ io.Writer }

// windowSize is the largest distance, in bytes, that a message may refer back.
const windowSize = 32 << 10

// agreed returns the compression that was offered in a request and accepted in a 101 response, or
// nil. coder/websocket refuses a response with any other extension. Each side may rule out that
// messages refer to those before them (RFC 7692, section 7.1.1).
func agreed(offer, answer http.Header) *compression {
	const name = "permessage-deflate"
	accepted := parameters(answer)
	if !slices.Contains(accepted, name) || !slices.Contains(parameters(offer), name) {
		return nil
	}
	const ours, theirs = "client_no_context_takeover", "server_no_context_takeover"
	return &compression{
		takeover: !slices.Contains(accepted, theirs),
		reach:    reach(accepted),
		keeps:    !slices.Contains(accepted, ours) && !slices.Contains(parameters(offer), ours),
	}
}

// reach returns how far back, in bytes, a message of the peer may refer according to the parameters
// that it has accepted (RFC 7692, section 7.1.2.1). A window of 8 bits counts as one of 9, because
// zlib replaces it by that.
func reach(accepted []string) int {
	for _, p := range accepted {
		bits, ok := strings.CutPrefix(p, "server_max_window_bits=")
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(strings.Trim(bits, `"`)); err == nil && n >= 8 && n < 15 {
			return 1 << max(n, 9)
		}
	}
	return windowSize
}

// parameters returns the names of the extensions in h and their parameters. White space is what
// coder/websocket takes for it.
func parameters(h http.Header) []string {
	all := strings.Join(h.Values("Sec-Websocket-Extensions"), ",")
	return strings.FieldsFunc(all, func(r rune) bool { return r == ',' || r == ';' || unicode.IsSpace(r) })
}

// remember keeps p, which is a part of a message, for later messages that refer to it (RFC 7692,
// section 7.1.1.1).
func (c *compression) remember(p []byte) {
	if !c.takeover {
		return
	}
	p = p[max(0, len(p)-c.reach):]
	if over := len(c.window) + len(p) - c.reach; over > 0 {
		c.window = c.window[:copy(c.window, c.window[over:])]
	}
	c.window = append(roomFor(c.window, len(p), c.reach), p...)
}
