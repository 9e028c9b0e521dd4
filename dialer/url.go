package dialer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseURL checks a URL. Its errors hold no part of it but a known scheme, because
// [url.Parse] prints the password in its errors.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case strings.TrimSpace(raw) != raw:
		return nil, errors.New("a space or a line break stands before or behind it: remove that")
	case err != nil:
		return nil, errors.New("malformed URL: want one like wss://host:port/path")
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http", "https":
		return nil, errors.New("scheme must be ws or wss, not " + u.Scheme)
	default:
		return nil, errors.New("scheme must be ws or wss: want a URL like wss://host:port/path")
	}
	if strings.Contains(raw, "#") {
		return nil, errors.New("a WebSocket URL has no fragment")
	}
	return u, checkHost(u)
}

// parseAddress checks a "host:port", and makes a URL of that scheme of it. Its
// errors hold no part of it.
func parseAddress(scheme, raw string) (*url.URL, error) {
	host, port, err := net.SplitHostPort(raw)
	if err != nil {
		return nil, errors.New("want host:port")
	}
	if !validPort(port) {
		return nil, errBadPort
	}
	u := &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}
	return u, checkHost(u)
}

// checkHost checks the name and the port of u, and puts the name into ASCII.
func checkHost(u *url.URL) error {
	name, port := u.Hostname(), u.Port()
	switch {
	case name == "":
		return errors.New("no host")
	case !validHost(u.Host):
		return errors.New("malformed host")
	case port != "" && !validPort(port):
		return errBadPort
	case isASCII(u.Host):
		return nil
	}
	u.Host = toASCII(name)
	if !isASCII(u.Host) || !validHost(u.Host) {
		return errors.New("malformed host")
	}
	if port != "" {
		u.Host = net.JoinHostPort(u.Host, port)
	}
	return nil
}

// toASCII returns a host name with its labels in ASCII (IDNA), or as it is if that
// cannot be done. The standard library can do it, but shows the result only in the
// address that net/http dials.
func toASCII(name string) (ascii string) {
	t := &http.Transport{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		ascii, _, _ = net.SplitHostPort(address)
		return nil, net.ErrClosed
	}}
	_, _ = t.RoundTrip(&http.Request{URL: &url.URL{Scheme: "http", Host: name}, Header: http.Header{}}) // waits for the dial
	return ascii
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

var errBadPort = errors.New("port must be 1 to 65535")

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// redacted returns u, which is of the configuration, as it may be printed. Its scheme, host and path are
// shown, even if they have a word that is a secret elsewhere, such as the user "feed" of wss://feed@feed.example.
func redacted(u *url.URL) string { return (*secrets)(nil).print(withoutQuery(u)) }

// withoutQuery returns the scheme, host and path of u.
func withoutQuery(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// defaultPorts has the port of each scheme of an endpoint or a proxy that needs none.
var defaultPorts = map[string]string{"ws": "80", "wss": "443", "http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// hostPort returns the address of u, for dialing, in lower case except for the zone of an IPv6 address, which
// is the name of an interface.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	host, zone, zoned := strings.Cut(u.Hostname(), "%")
	if host = strings.ToLower(host); zoned {
		host += "%" + zone
	}
	return net.JoinHostPort(host, port)
}

// validHost reports whether net/http would send host as it is. It replaces a bad one by
// an empty one and returns no error.
func validHost(host string) bool {
	return host != "" && !strings.ContainsFunc(host, func(r rune) bool {
		return r < utf8.RuneSelf && !alphanumeric(r) && !strings.ContainsRune("!$%&'()*+,-.:;=[]_~", r)
	})
}

// tokenMarks are the characters of a token that are no letters and no digits.
const tokenMarks = "!#$%&'*+-.^_`|~"

// checkToken returns an error if s is no token of RFC 9110, section 5.6.2: the name of a header, or a
// subprotocol. The error has no part of s but one character.
func checkToken(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	for i, r := range s {
		if !alphanumeric(r) && !strings.ContainsRune(tokenMarks, r) {
			return fmt.Errorf("has %q at byte %d: want letters, digits and %s only", r, i, tokenMarks)
		}
	}
	return nil
}

// validValue reports whether s can be the value of a header (RFC 9110, section 5.5).
func validValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func alphanumeric(r rune) bool {
	return '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}
