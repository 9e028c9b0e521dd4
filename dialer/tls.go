package dialer

import "crypto/tls"

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

// needsFullHandshake reports whether resuming a session would pass over something
// that c asks for. A resumed session has the client certificate of its first
// handshake, although c may have another one by now (GetClientCertificate is there for
// that, and the elements of Certificates can be replaced), and VerifyPeerCertificate
// is not called. VerifyConnection is called for resumed sessions too (see its
// documentation), and crypto/tls itself checks name, validity and roots again, so that
// these need no full handshake.
func needsFullHandshake(c *tls.Config) bool {
	return len(c.Certificates) > 0 || c.GetClientCertificate != nil || c.VerifyPeerCertificate != nil
}
