//go:build linux

package clients_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/port"
	"github.com/redial-go/redial/bench/interop/clients"
	"github.com/redial-go/redial/dialer"
)

func TestAnHTTPRequestWaitsForTheServerToComeUp(t *testing.T) {
	address := "127.0.0.1:" + port.Free(t)
	server := &http.Server{}
	served := make(chan error, 1)
	d, _ := retrying()
	d.OnProgress = func(p dialer.Progress) {
		if p.Tries == 3 && !p.Done {
			l, err := net.Listen("tcp", address)
			require.NoError(t, err)
			go func() { served <- server.Serve(l) }()
		}
	}
	c := clients.HTTP(d)
	defer c.CloseIdleConnections()
	resp, err := c.Get("http://" + address)
	require.NoError(t, err)
	resp.Body.Close()
	server.Close()
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}
