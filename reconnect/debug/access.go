package debug

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Loopback reports whether r comes from this machine to this machine:
//
//   - The client has a loopback address.
//   - The Host header is a loopback address, "localhost" or a name below it; others may be sent by a page of
//     another site (DNS rebinding).
//   - The Origin header, if any, names that Host.
//   - The request did not come through a proxy: it has no header of a proxy (Forwarded, Via, X-Real-IP,
//     CF-Connecting-IP or X-Forwarded-...), and its protocol is not HTTP/1.0, which many proxies speak by
//     default.
//
// A proxy on this machine that speaks HTTP/1.1, sets no such header and writes another Host, as nginx does with
// proxy_http_version 1.1, looks like a local client. So does every client behind HAProxy without "option
// forwardfor", or behind anything that forwards TCP (socat, ssh -L, kubectl port-forward, a container port),
// because it may send any Host. There Loopback protects nothing: set [Options].Token.
func Loopback(r *http.Request) bool {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && client.Addr().Unmap().IsLoopback() && loopbackHost(r.Host) && ownOrigin(r) && !proxied(r)
}

// proxied reports whether r came through a proxy.
func proxied(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) {
		return true
	}
	for header := range r.Header {
		switch header {
		case "Forwarded", "Via", "X-Real-Ip", "Cf-Connecting-Ip":
			return true
		}
		if strings.HasPrefix(header, "X-Forwarded-") {
			return true
		}
	}
	return false
}

// ownOrigin reports whether each Origin header of r names the host of the page.
func ownOrigin(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	return true
}

// loopbackHost reports whether a Host header, with or without a port, names this machine.
func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// refused returns the status with which a request is refused, and why, or 0.
func (p *Page) refused(r *http.Request) (status int, why string) {
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case p.isClosed():
		return http.StatusServiceUnavailable, "the page is closed"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "the page can only be read"
	case !p.o.Allow(r):
		return http.StatusForbidden, "only clients on this machine may see this page, by a loopback name or address and without a proxy (debug.Options.Allow can allow more)"
	case (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate":
		return http.StatusForbidden, "another site may not read this page"
	case !p.token.in(r):
		return http.StatusUnauthorized, "this page wants the token of debug.Options.Token: " +
			"by a link with ?token=TOKEN, or in the header Authorization: Bearer TOKEN"
	}
	return 0, ""
}

// secure sets the headers that every answer has.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
