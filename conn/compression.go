package conn

import (
	"compress/flate"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// compression is permessage-deflate as both sides have agreed on it (RFC 7692, section
// 7.1).
type compression struct {
	takeover bool   // a message of the peer may refer to those before it
	reach    int    // how far back, in bytes
	window   []byte // what it may refer to

	keeps  bool          // our messages may refer to those before them (section 7.1.1.2)
	writer *flate.Writer // then it is kept; it belongs to the goroutine that has the turn to write
	out    target        // where writer writes
}

// target holds what was written to it.
type target struct{ buf []byte }

func (t *target) Write(p []byte) (int, error) {
	t.buf = append(roomFor(t.buf, len(p), maxLimit), p...)
	return len(p), nil
}

// windowSize is the largest distance, in bytes, that a message may refer back.
const windowSize = 32 << 10

// The names of the extension and of its parameters (RFC 7692, section 7.1).
const (
	permessageDeflate = "permessage-deflate"
	serverForgets     = "server_no_context_takeover"
	clientForgets     = "client_no_context_takeover"
	serverWindow      = "server_max_window_bits"
)

const extensionsHeader = "Sec-Websocket-Extensions"

// agreed returns the compression that was offered in a request and accepted in a 101 response, or
// nil. Each side may rule out that messages refer to those before them (RFC 7692, section 7.1.1). The error
// is why the client must fail the connection: an extension that was not offered (RFC 6455, section 4.1), or
// a parameter that was not offered, comes twice or is invalid (RFC 7692, section 7.1).
func agreed(offer, answer http.Header) (*compression, error) {
	accepted := extensions(answer)
	if len(accepted) == 0 {
		return nil, nil
	}
	c := &compression{takeover: true, reach: windowSize, keeps: true}
	offered := false
	for _, e := range extensions(offer) {
		if e[0] == permessageDeflate {
			offered = true
			c.keeps = c.keeps && !slices.Contains(e, clientForgets)
		}
	}
	if !offered || len(accepted) > 1 || accepted[0][0] != permessageDeflate {
		return nil, wrongAnswer("an extension that was not offered", extensionsIn(answer))
	}
	for i, p := range accepted[0][1:] {
		if err := c.accept(p, accepted[0][1:][:i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// accept applies a parameter that the server has accepted after the parameters before.
func (c *compression) accept(parameter string, before []string) error {
	name, value, hasValue := strings.Cut(parameter, "=")
	valid := !hasValue
	switch name {
	case serverForgets:
		c.takeover = false
	case clientForgets:
		c.keeps = false
	case serverWindow:
		c.reach, valid = reach(value)
	default: // client_max_window_bits among them, which we do not offer (RFC 7692, section 7.1.2.2)
		return wrongAnswer("a parameter of permessage-deflate that was not offered", parameter)
	}
	for _, p := range before {
		if same, _, _ := strings.Cut(p, "="); same == name {
			return wrongAnswer("a parameter of permessage-deflate that comes twice", parameter)
		}
	}
	if !valid {
		return wrongAnswer("a parameter of permessage-deflate with an invalid value", parameter)
	}
	return nil
}

func wrongAnswer(what, header string) error {
	return &ProtocolError{Err: fmt.Errorf("%s: %q", what, cutReason(header))}
}

// reach returns how far back, in bytes, a message of the peer may refer with this value of server_max_window_bits:
// 8 to 15, in quotes or not (RFC 7692, section 7.1.2.1). A window of 8 bits counts as one of 9, because zlib replaces
// it by that.
func reach(value string) (n int, valid bool) {
	if len(value) > 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	bits, err := strconv.Atoi(value)
	if err != nil || bits < 8 || bits > 15 || strconv.Itoa(bits) != value {
		return 0, false
	}
	return 1 << max(bits, 9), true
}

func extensionsIn(h http.Header) string { return strings.Join(h.Values(extensionsHeader), ", ") }

// extensions returns the extensions in h, each as its name and its parameters (RFC 6455, section 9.1). Empty
// elements of the list do not count (RFC 9110, section 5.6.1.2). No extension of ours has a comma or a semicolon
// in quotes.
func extensions(h http.Header) (all [][]string) {
	for _, element := range strings.Split(extensionsIn(h), ",") {
		e := strings.Split(element, ";")
		for i := range e {
			e[i] = strings.Trim(e[i], " \t")
		}
		if len(e) > 1 || e[0] != "" {
			all = append(all, e)
		}
	}
	return all
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
