//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/program"
)

// A server that is not ready gets no new connection and keeps those that it has. The monitor says
// whether both are ready.
const haproxyConfig = `
defaults
	mode http
	timeout connect 5s
	timeout client 30s
	timeout server 30s
	timeout tunnel 1h
	timeout check 2s
frontend front
	bind %s
	maxconn 10000
	monitor-uri /both
	acl one nbsrv(back) lt 2
	monitor fail if one
	default_backend back
backend back
	option httpchk GET /ready
	default-server check inter 100ms fall 3 rise 1
	server first %s
	server second %s
`

// startHAProxy starts a haproxy before two servers, and returns its address.
func startHAProxy(t *testing.T, first, second string) string {
	path, err := exec.LookPath("haproxy")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			t.Skip("no haproxy on this machine")
		}
	}
	address, file := freeAddress(t), filepath.Join(t.TempDir(), "haproxy.cfg")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, haproxyConfig, address, first, second), 0o600))
	cmd := exec.Command(path, "-db", "-f", file)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return address
}

// freeAddress returns an address on loopback at which nobody listens.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// The first server gets a SIGINT when the second is there and all clients are with the first.
func TestTheDemonstrationBehindHAProxyLosesNothing(t *testing.T) {
	for _, query := range []string{"", "?notice"} {
		t.Run("clients"+query, func(t *testing.T) {
			t.Parallel()
			second := freeAddress(t)
			server, first := serving(t, "-lead", "500ms", "-window", "1s")
			front := startHAProxy(t, first, second)
			both := func(want int) {
				t.Helper()
				require.Eventually(t, func() bool { return status("http://"+front+"/both") == want }, time.Minute, 20*time.Millisecond)
			}
			both(http.StatusServiceUnavailable)
			clients, err := newCrowd(&dialer.WebSocket{URL: "ws://" + front + "/ws" + query}, 30)
			require.NoError(t, err)
			defer clients.end()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, clients.awaitReady(ctx))
			program.Start(t, "serve", "-addr", second).Await("listening on")
			both(http.StatusOK)
			ended := make(chan error, 1)
			go func() { server.ExitCode(); ended <- nil }() // outlive waits for it
			require.NoError(t, clients.outlive(ctx, server.Interrupt, ended))
			require.Zero(t, server.ExitCode())
			_, missing := clients.messages()
			require.Zero(t, missing)
			require.Contains(t, server.String(), " connections over 1s, after 500ms\n")
		})
	}
}
