package dialer

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"net/url"
	"strings"
)

// tlsConfigs has one TLS configuration for each host of an endpoint, so that the connections to a
// host share it. The configurations never change, because a resumed session would not
// be checked again by a changed one.
type tlsConfigs struct {
	base   *tls.Config // its ServerName, if the user has set one, is for all hosts
	byHost map[string]*tls.Config
}

// newTLSConfigs returns the configurations of the endpoints at urls. It changes given; nil is the
// zero Config.
func newTLSConfigs(given *tls.Config, urls []*url.URL) *tlsConfigs {
	c := &tlsConfigs{base: tlsDefaults(given), byHost: make(map[string]*tls.Config)}
	for _, u := range urls {
		c.byHost[u.Hostname()] = c.forHost(u.Hostname())
	}
	return c
}

// forHost returns the configuration of connections to host.
func (c *tlsConfigs) forHost(host string) *tls.Config {
	if c.base.ServerName != "" {
		return c.base
	}
	if known := c.byHost[host]; known != nil {
		return known
	}
	return c.named(host) // Prepare may name any host
}

// named returns a configuration with the ServerName of host, which may have a zone.
func (c *tlsConfigs) named(host string) *tls.Config {
	named := c.base.Clone()
	named.ServerName, _, _ = strings.Cut(host, "%") // a certificate has no zone
	return named
}

// forProxy returns the configuration of connections to a proxy. A list for Encrypted Client Hello is that of
// the endpoints.
func (c *tlsConfigs) forProxy(host string) *tls.Config {
	own := c.named(host)
	own.EncryptedClientHelloConfigList = nil
	return own
}

// tlsDefaults completes c, nil for the zero Config, with the defaults that [WebSocket.TLS] documents.
//
// There is no session cache where resuming a session would skip something that c asks for. A
// resumed session has the client certificate of its first handshake, although c may have another
// one by now (GetClientCertificate is there for that, and the elements of Certificates can be
// replaced), and VerifyPeerCertificate is not called. VerifyConnection is called for resumed
// sessions too (see its documentation), and crypto/tls itself checks name, validity and roots again.
func tlsDefaults(c *tls.Config) *tls.Config {
	if c == nil {
		c = &tls.Config{}
	}
	if c.MinVersion == 0 && c.EncryptedClientHelloConfigList == nil { // which allows no MinVersion below 1.3
		c.MinVersion = tls.VersionTLS12
	}
	full := len(c.Certificates) > 0 || c.GetClientCertificate != nil || c.VerifyPeerCertificate != nil
	if c.ClientSessionCache == nil && !full {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	return c
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
