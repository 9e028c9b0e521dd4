package dialer

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// parseEndpoint checks a URL. Its errors hold no part of it but a known scheme:
// those of [url.Parse] print the password.
func parseEndpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("malformed URL")
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http", "https":
		return nil, errors.New("scheme must be ws or wss, not " + u.Scheme)
	default:
		return nil, errors.New("scheme must be ws or wss")
	}
	switch {
	case strings.Contains(raw, "#"):
		return nil, errors.New("a WebSocket URL has no fragment")
	case u.Hostname() == "":
		return nil, errors.New("no host")
	case !validHost(u.Host):
		return nil, errors.New("malformed host")
	}
	if p := u.Port(); p != "" && !validPort(p) {
		return nil, errBadPort
	}
	return u, nil
}

// parseAddress checks a "host:port", and makes a URL of that scheme of it. Its
// errors hold no part of it.
func parseAddress(scheme, raw string) (*url.URL, error) {
	host, port, err := net.SplitHostPort(raw)
	switch {
	case err != nil:
		return nil, errors.New("want host:port")
	case host == "":
		return nil, errors.New("no host")
	case !validHost(host):
		return nil, errors.New("malformed host")
	case !validPort(port):
		return nil, errBadPort
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}, nil
}

var errBadPort = errors.New("port must be 1 to 65535")

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// redacted is u as it may be printed: scheme, host and path.
func redacted(u *url.URL) string {
	return printable(u.Scheme + "://" + u.Host + u.EscapedPath())
}

// hostPort is where u is dialled, without a proxy.
func hostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "wss":
		port = "443"
	default:
		port = "80"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// validHost reports whether net/http would send host as it is: a bad one it
// replaces by an empty one, and says nothing. Letters beyond ASCII it encodes.
func validHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if c < 0x80 && !alphanumeric(c) && !strings.ContainsRune("!$%&'()*+,-.:;=[]_~", rune(c)) {
			return false
		}
	}
	return host != ""
}

// validToken reports whether s is a token of RFC 9110, section 5.6.2: a header's
// name, or a subprotocol.
func validToken(s string) bool {
	for i := range len(s) {
		if !alphanumeric(s[i]) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(s[i])) {
			return false
		}
	}
	return s != ""
}

// validValue reports whether s can be a header's value (RFC 9110, section 5.5).
func validValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
