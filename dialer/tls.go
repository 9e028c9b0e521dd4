package dialer

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"net/url"
)

// tlsConfigs has one TLS configuration for each host, so that the connections to a
// host share it. The configurations never change, because a resumed session would not
// be checked again by a changed one.
type tlsConfigs struct {
	shared *tls.Config            // for the host of the first endpoint, or for all
	all    bool                   // the user has set a ServerName, which is for all hosts
	byHost map[string]*tls.Config // for the other hosts, if there are some
}

// newTLSConfigs returns the configurations of the endpoints at urls. A nil given is the zero
// Config.
func newTLSConfigs(given *tls.Config, urls []*url.URL) *tlsConfigs {
	c := &tlsConfigs{shared: tlsDefaults(given)}
	if c.all = c.shared.ServerName != ""; c.all {
		return c
	}
	c.shared.ServerName = urls[0].Hostname()
	for _, u := range urls {
		if host := u.Hostname(); host != c.shared.ServerName {
			if c.byHost == nil {
				c.byHost = make(map[string]*tls.Config)
			}
			c.byHost[host] = c.named(host)
		}
	}
	return c
}

// forHost returns the configuration of connections to host.
func (c *tlsConfigs) forHost(host string) *tls.Config {
	if c.all || host == c.shared.ServerName {
		return c.shared
	}
	if known := c.byHost[host]; known != nil {
		return known
	}
	return c.named(host) // Prepare may name any host
}

// forProxy returns the configuration of connections to a proxy, whatever ServerName is set
// for endpoints.
func (c *tlsConfigs) forProxy(host string) *tls.Config { return c.named(host) }

// named returns a configuration with that ServerName.
func (c *tlsConfigs) named(host string) *tls.Config {
	named := c.shared.Clone()
	named.ServerName = host
	return named
}

// tlsDefaults returns a copy of given, nil for the zero Config, with the defaults that
// [WebSocket.TLS] documents.
func tlsDefaults(given *tls.Config) *tls.Config {
	c := &tls.Config{}
	if given != nil {
		c = given.Clone()
	}
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	if c.ClientSessionCache == nil && !needsFullHandshake(c) {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return c
}

// needsFullHandshake reports whether resuming a session would skip something that c asks
// for. A resumed session has the client certificate of its first
// handshake, although c may have another one by now (GetClientCertificate is there for
// that, and the elements of Certificates can be replaced), and VerifyPeerCertificate
// is not called. VerifyConnection is called for resumed sessions too (see its
// documentation), and crypto/tls itself checks name, validity and roots again, so that
// these need no full handshake.
func needsFullHandshake(c *tls.Config) bool {
	return len(c.Certificates) > 0 || c.GetClientCertificate != nil || c.VerifyPeerCertificate != nil
}

// handshakeTLS puts TLS on nc. It calls the hooks of httptrace, as net/http does.
func handshakeTLS(ctx context.Context, nc net.Conn, config *tls.Config) (net.Conn, error) {
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	c := tls.Client(nc, config)
	err := c.HandshakeContext(ctx)
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(c.ConnectionState(), err)
	}
	return c, err
}
