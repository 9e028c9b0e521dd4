package dialer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect/backoff"
)

const secureURL = "wss://user:passwd@example.com/feed?token=qsecret"

// inSecureVenue runs test with a wss server, whose certificate is for
// example.com and which the dialer trusts.
func inSecureVenue(t *testing.T, test func(t *testing.T, v *venue)) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s.Client().CloseIdleConnections()
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		v := &venue{Server: conntest.NewServer(n, "example.com:443", nil), network: n}
		defer v.Close()
		v.TLS = &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
		v.dialer = &WebSocket{URL: secureURL, DialContext: n.DialContext, TLS: &tls.Config{RootCAs: roots}}
		test(t, v)
		synctest.Wait()
		require.Zero(t, n.Open(), "connections left open")
	})
}

// handshake dials and returns the state of TLS.
func (v *venue) handshake(t *testing.T) (state tls.ConnectionState) {
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		TLSHandshakeDone: func(s tls.ConnectionState, _ error) { state = s },
	})
	c, err := v.dialer.Dial(ctx)
	require.NoError(t, err)
	defer c.CloseNow()
	require.NoError(t, c.Write(helloMessage))
	_, err = c.Read(nil) // the session ticket comes with the first bytes read
	require.NoError(t, err)
	return state
}

func TestARedialResumesTheTLSSession(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		require.False(t, v.handshake(t).DidResume)
		require.True(t, v.handshake(t).DidResume)
	})
}

func TestHTTP2IsNeverNegotiated(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		v.dialer.TLS.NextProtos = []string{"h2"}
		require.Empty(t, v.handshake(t).NegotiatedProtocol)
	})
}

func TestSessionTicketsCanBeTurnedOff(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		v.dialer.TLS.SessionTicketsDisabled = true
		require.False(t, v.handshake(t).DidResume)
		require.False(t, v.handshake(t).DidResume)
	})
}

func TestTLSConfigIsClonedAndHardened(t *testing.T) {
	given := &tls.Config{ServerName: "x"}
	for _, d := range []*WebSocket{{TLS: given}, {Transport: &http.Transport{TLSClientConfig: given}}} {
		c := d.tlsConfig()
		require.NotSame(t, given, c)
		require.Equal(t, "x", c.ServerName)
		require.Equal(t, uint16(tls.VersionTLS12), c.MinVersion)
	}
	require.Equal(t, &tls.Config{ServerName: "x"}, given)
}

func TestCertificateProblemsAreSlow(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(v *venue)
		want  string
	}{
		"authority": {func(v *venue) { v.dialer.TLS.RootCAs = x509.NewCertPool() }, "certificate signed by unknown authority"},
		"name":      {func(v *venue) { v.dialer.TLS.ServerName = "other.example" }, "not other.example"},
		"expired": {func(v *venue) { v.dialer.TLS.Time = func() time.Time { return time.Unix(1<<33, 0) } },
			"certificate is valid only from 1970-01-01T00:00:00Z to 2084-01-29T16:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			inSecureVenue(t, func(t *testing.T, v *venue) {
				c.spoil(v)
				e := v.fail(t, t.Context(), 0)
				require.Contains(t, e.Error(), c.want)
				require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
			})
		})
	}
}

func TestAWrongSchemeIsNamedBothWays(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		v.dialer.URL = "ws://example.com:443/"
		e := v.fail(t, t.Context(), 0)
		require.EqualError(t, e, "dial ws://example.com:443/: 400 Bad Request: is this a wss server?")
	})
	inVenue(t, func(t *testing.T, v *venue) {
		v.dialer.URL = "wss://venue.example:80/"
		e := v.fail(t, t.Context(), 0)
		require.EqualError(t, e, "dial wss://venue.example:80/: answered without TLS: is this a ws server?")
		require.Equal(t, backoff.ClassSlow, backoff.Classify(e).Class)
	})
}

// A server that is silent in TLS: net/http would shake hands for ever.
func TestTheHandshakeLimitCoversTLS(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		v.network.Fault("example.com:443", conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }})
		v.dialer.Transport = &http.Transport{TLSHandshakeTimeout: time.Second}
		e := v.fail(t, t.Context(), 30*time.Second)
		require.EqualError(t, e, "dial wss://example.com/feed: handshake not answered within 30s")
	})
}

func TestContextEndsTLS(t *testing.T) {
	inSecureVenue(t, func(t *testing.T, v *venue) {
		v.network.Fault("example.com:443", conntest.Fault{OnConn: func(p *conntest.Pipe) { p.Stall(conntest.ToClient) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, v.fail(t, ctx, time.Second), context.DeadlineExceeded)
	})
}
