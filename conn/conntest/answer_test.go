package conntest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
)

// answered dials a server that gives answer a.
func answered(t *testing.T, a conntest.Answer, f func(t *testing.T, s *conntest.Server, n *conntest.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, addr, nil)
		defer s.Close()
		s.Next(a)
		f(t, s, &n)
		synctest.Wait()
		require.Empty(t, n.Unclosed())
	})
}

func TestStatusAnswersWithStatusAndHeader(t *testing.T) {
	for _, test := range []struct {
		code   int
		header http.Header
		want   string
	}{
		{401, nil, ""}, {403, nil, ""}, {404, nil, ""}, {410, nil, ""}, {200, nil, ""},
		{429, conntest.RetryAfter("7"), "7"},
	} {
		answered(t, conntest.Status(test.code, test.header), func(t *testing.T, _ *conntest.Server, n *conntest.Network) {
			_, resp, err := dial(t.Context(), n)
			require.Error(t, err)
			require.Equal(t, test.code, resp.StatusCode)
			require.Equal(t, test.want, resp.Header.Get("Retry-After"))
		})
	}
}

func TestGarbageIsNoHTTP(t *testing.T) {
	answered(t, conntest.Garbage([]byte("SSH-2.0-OpenSSH\r\n")), func(t *testing.T, _ *conntest.Server, n *conntest.Network) {
		_, _, err := dial(t.Context(), n)
		require.ErrorContains(t, err, "malformed HTTP response")
	})
}

// coder/websocket reads on for three seconds.
func TestBadAcceptFailsTheVerification(t *testing.T) {
	answered(t, conntest.BadAccept, func(t *testing.T, _ *conntest.Server, n *conntest.Network) {
		start := time.Now()
		_, _, err := dial(t.Context(), n)
		require.ErrorContains(t, err, "Sec-WebSocket-Accept")
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestHangingHandshakeEndsWithItsContext(t *testing.T) {
	answered(t, conntest.Hang, func(t *testing.T, _ *conntest.Server, n *conntest.Network) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err := dial(ctx, n)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestHangUpIsAnEOF(t *testing.T) {
	answered(t, conntest.HangUp, func(t *testing.T, _ *conntest.Server, n *conntest.Network) {
		_, _, err := dial(t.Context(), n)
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestAcceptWithRunsAnotherHandlerOnce(t *testing.T) {
	answered(t, nil, func(t *testing.T, s *conntest.Server, n *conntest.Network) {
		s.Next(s.AcceptWith(conntest.CloseWith(1008, "no")), s.Accept)
		c, _, err := dial(t.Context(), n)
		require.NoError(t, err)
		_, _, err = c.Read(t.Context())
		require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
		c, _, err = dial(t.Context(), n)
		require.NoError(t, err)
		require.NoError(t, c.Close(websocket.StatusNormalClosure, ""))
	})
}

func TestServerSpeaksTLS(t *testing.T) {
	certificate, roots := selfSigned(t)
	synctest.Test(t, func(t *testing.T) {
		var n conntest.Network
		s := conntest.NewServer(&n, "feed.test:443", func(ctx context.Context, c *websocket.Conn, r *http.Request) {
			if conntest.PipeOf(ctx) != nil && r.TLS != nil {
				conntest.Echo(ctx, c, r)
			}
		})
		defer s.Close()
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
		transport := &http.Transport{
			DialContext:     n.DialContext,
			TLSClientConfig: &tls.Config{RootCAs: roots, Time: func() time.Time { return validAt }},
		}
		c, _, err := websocket.Dial(t.Context(), "wss://feed.test/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
		require.NoError(t, err)
		defer c.CloseNow()
		require.NoError(t, c.Ping(c.CloseRead(t.Context())))
	})
}

var validAt = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// selfSigned makes a certificate for feed.test, and a pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"feed.test"},
		NotBefore: validAt.Add(-time.Hour), NotAfter: validAt.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
