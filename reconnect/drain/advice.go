package drain

//lint:file-ignore ST1005 the texts of validate begin with the name of a field

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Advice tells a client about its next dial, in the reason of a close frame:
//
//	redial/1 wait=12s spread=30s url=wss://b.example/ws
//
// The text is the word redial/1 followed by the non-zero fields, separated by spaces; durations are formatted
// as by [time.Duration.String]. A client of package reconnect follows it automatically, within the limits given
// at reconnect.Advice.
type Advice struct {
	// Wait is how long the client waits before it dials again. Default: not at all.
	Wait time.Duration

	// Spread is the range of a random time that each client adds to Wait, from [0, Spread). Wait and Spread
	// together are at most an hour.
	Spread time.Duration

	// URL is where the client dials next. It is absolute, with the scheme ws or wss, without user, fragment and
	// query, because clients log the reasons of close frames, and queries hold tokens. A client should follow
	// it only to a host that it knows: that of its current URL, or one that its user has allowed. Default: the
	// current URL.
	URL string
}

const (
	// maxReason is how many bytes the reason of a close frame can have (RFC 6455, sections 5.5
	// and 5.5.1: 125 in all, 2 for the code).
	maxReason = 123

	// maxWait is the longest Wait and Spread together that a client of package reconnect obeys.
	maxWait = time.Hour
)

// String returns the text for the close frame. [New] returns an error for an Advice whose text does not fit
// into a close frame, or that no client could follow.
func (a Advice) String() string {
	text := "redial/1"
	if a.Wait > 0 {
		text += " wait=" + a.Wait.String()
	}
	if a.Spread > 0 {
		text += " spread=" + a.Spread.String()
	}
	if a.URL != "" {
		text += " url=" + a.URL
	}
	return text
}

// validate returns an error that names the field which is wrong. The error holds no part of the URL.
func (a Advice) validate() error {
	switch {
	case a.Wait < 0:
		return fmt.Errorf("Wait: %v is negative", a.Wait)
	case a.Spread < 0:
		return fmt.Errorf("Spread: %v is negative", a.Spread)
	case a.Wait > maxWait || a.Spread > maxWait-a.Wait:
		return fmt.Errorf("Wait and Spread: %v and %v are more than an hour", a.Wait, a.Spread)
	}
	if err := validURL(a.URL); err != nil {
		return fmt.Errorf("URL: %w", err)
	}
	if n := len(a.String()); n > maxReason {
		return fmt.Errorf("URL: the text of the Advice has %d bytes, and a close frame has room for %d", n, maxReason)
	}
	return nil
}

// validURL returns an error without any part of raw.
func validURL(raw string) error {
	if raw == "" {
		return nil
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] >= 0x7f {
			return errors.New("want ASCII without spaces")
		}
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("malformed")
	case u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" || !validPort(u.Port()):
		return errors.New("want one like wss://host:port/path")
	case u.User != nil:
		return errors.New("a user is not allowed")
	case strings.ContainsAny(raw, "?#"):
		return errors.New("a query or a fragment is not allowed")
	}
	return nil
}

// validPort reports whether port is empty or a port to which a connection can be made.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}
