package drain

//lint:file-ignore ST1005 the texts of Validate begin with the name of a field

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Reason is what the reason of a close frame tells a client about its next dial. In the frame
// it is a text such as
//
//	redial/1 wait=12s spread=30s url=wss://b.example/ws
//
// Any client may obey it. Those of package reconnect do so by themselves; the limits that
// they keep are those of reconnect.ReadAdvice.
type Reason struct {
	// Wait is how long the client is to wait before it dials again. Default: not at all.
	Wait time.Duration

	// Spread is the width of a draw that is added to Wait: each client takes a time of its own
	// from [0, Spread). Default: none.
	Spread time.Duration

	// URL is where the client is to dial next. It is absolute, with the scheme ws or wss, and
	// without a user, a query (because clients log the reasons of close frames, and queries hold
	// tokens) and a fragment. A client should follow it only to a host that it knows:
	// that of its present URL, or one that its user has allowed. Default: the same as before.
	URL string
}

const (
	prefix = "redial/1"

	// maxReason is how many bytes the reason of a close frame can have (RFC 6455, sections 5.5
	// and 5.5.1: 125 in all, 2 for the code).
	maxReason = 123

	// maxWait is the longest Wait and Spread together that a client of package reconnect obeys.
	maxWait = time.Hour
)

// String returns the text for a close frame. See Validate.
func (r Reason) String() string {
	text := prefix
	if r.Wait > 0 {
		text += " wait=" + r.Wait.String()
	}
	if r.Spread > 0 {
		text += " spread=" + r.Spread.String()
	}
	if r.URL != "" {
		text += " url=" + r.URL
	}
	return text
}

// Validate returns an error that names the field which is wrong, or says that the text is
// longer than the 123 bytes that a close frame can have. The error holds no part of the URL.
func (r Reason) Validate() error {
	switch {
	case r.Wait < 0:
		return fmt.Errorf("Wait: %v is negative", r.Wait)
	case r.Spread < 0:
		return fmt.Errorf("Spread: %v is negative", r.Spread)
	case r.Wait > maxWait || r.Spread > maxWait-r.Wait:
		return fmt.Errorf("Wait and Spread: %v and %v are more than an hour", r.Wait, r.Spread)
	}
	if err := validURL(r.URL); err != nil {
		return fmt.Errorf("URL: %w", err)
	}
	if n := len(r.String()); n > maxReason {
		return fmt.Errorf("URL: the reason has %d bytes, and a close frame has room for %d", n, maxReason)
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
		return errors.New("a user has no place there")
	case strings.ContainsAny(raw, "?#"):
		return errors.New("a query or a fragment has no place there")
	}
	return nil
}

// validPort reports whether a connection can be made to port, or whether there is none.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// ParseReason reads the reason of a close frame, for a client that does not use package
// reconnect. It reports false for a reason of another form. Fields that it does not know, or
// cannot read, are ignored. A Wait longer than an hour counts as an hour, and the Spread as what
// is left of it. It does not say whether the URL may be followed: see [Reason].URL.
func ParseReason(reason string) (r Reason, ok bool) {
	fields := strings.Fields(reason)
	if len(fields) == 0 || fields[0] != prefix {
		return Reason{}, false
	}
	for _, f := range fields[1:] {
		name, value, _ := strings.Cut(f, "=")
		switch name {
		case "wait":
			r.Wait = parseDuration(value)
		case "spread":
			r.Spread = parseDuration(value)
		case "url":
			if validURL(value) == nil {
				r.URL = value
			}
		}
	}
	r.Wait = min(r.Wait, maxWait)
	r.Spread = min(r.Spread, maxWait-r.Wait)
	return r, true
}

// parseDuration returns the duration that text says, 0 if it says none, and none below 0.
func parseDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return max(d, 0)
}
