package dialer

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// asked is a resolver that notes the name it is asked for, and knows none.
type asked struct{ atomic.Value }

func (a *asked) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	a.Store(host)
	return nil, errFell
}

func TestNamesOutsideOfASCIIAreConverted(t *testing.T) {
	for host, want := range map[string]string{
		"bücher.example":        "xn--bcher-kva.example",
		"BÜCHER.example":        "xn--bcher-kva.example",
		"www.日本語。jp":            "www.xn--wgv71a119e.jp",
		"xn--bcher-kva.example": "xn--bcher-kva.example",
		"a_b.example":           "a_b.example",
	} {
		var a, b asked
		w := &WebSocket{URL: "wss://" + host + ":7/x", TCP: TCPOptions{LookupNetIP: a.LookupNetIP}}
		f := &Framed{Address: host + ":7", Framer: conn.Lines{}, TCP: TCPOptions{LookupNetIP: b.LookupNetIP}}
		_, err := w.Dial(t.Context())
		require.ErrorContains(t, err, "dial wss://"+want+":7/x: ")
		_, err = f.Dial(t.Context())
		require.ErrorContains(t, err, "dial tcp://"+want+":7: ")
		require.Equal(t, want, a.Load())
		require.Equal(t, want, b.Load())
		require.Equal(t, want+":7", w.Host())
	}
}

func TestANameThatCannotBeConvertedIsRefused(t *testing.T) {
	for _, host := range []string{"xn--ü.example", "a.ü\u200d.example", "[fe80::1%25ü]"} {
		require.ErrorContains(t, (&WebSocket{URL: "ws://" + host}).Validate(), "dialer: WebSocket.URL: malformed host", host)
		require.ErrorContains(t, (&Framed{Address: host + ":1", Framer: conn.Lines{}}).Validate(), "dialer: Framed.Address: malformed host", host)
	}
}
