package dialer

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parseURL checks a URL. Its errors hold no part of it but a known scheme, because
// those of [url.Parse] print the password.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
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
	if u.Host, err = checkHost(u.Host, u.Hostname(), u.Port()); err != nil {
		return nil, err
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
	if err != nil {
		return nil, errors.New("want host:port")
	}
	if host, err = checkHost(host, host, ""); err != nil {
		return nil, err
	}
	if !validPort(port) {
		return nil, errBadPort
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}, nil
}

// checkHost returns the host of a URL, which consists of a name and perhaps a port,
// with the name in ASCII.
func checkHost(host, name, port string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("no host")
	case !validHost(host):
		return "", errors.New("malformed host")
	case isASCII(host):
		return host, nil
	}
	ascii := toASCII(name)
	switch {
	case !isASCII(ascii) || !validHost(ascii):
		return "", errors.New("malformed host")
	case port != "":
		ascii = net.JoinHostPort(ascii, port)
	}
	return ascii, nil
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
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

var errBadPort = errors.New("port must be 1 to 65535")

func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// redacted returns u as it may be printed: scheme, host and path.
func redacted(u *url.URL) string {
	return printable(u.Scheme + "://" + u.Host + u.EscapedPath())
}

// defaultPorts has the port of each scheme of an endpoint or a proxy that needs none.
var defaultPorts = map[string]string{"ws": "80", "wss": "443", "http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// hostPort returns the address of u, for dialing.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = defaultPorts[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// validHost reports whether net/http would send host as it is. It replaces a bad one by
// an empty one and returns no error.
func validHost(host string) bool {
	for i := range len(host) {
		c := host[i]
		if c < utf8.RuneSelf && !alphanumeric(c) && !strings.ContainsRune("!$%&'()*+,-.:;=[]_~", rune(c)) {
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
