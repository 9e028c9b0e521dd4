//go:build unix

package rotate_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
)

// The soft stop of a real haproxy. A reload starts a new worker. The old one accepts nothing
// more, and ends when it has no connection left. A WebSocket is one for as long as it lives, or
// until hard-stop-after.

const haproxyConfig = `
global
	hard-stop-after %dms
	close-spread-time 1s
	maxconn 64
	nbthread 1
defaults
	mode http
	timeout connect 5s
	timeout client 5s
	timeout server 5s
	timeout tunnel 1h
frontend front
	bind %s
	http-request set-header X-Process %%pid
	default_backend back
backend back
	server one %s
`

// startHAProxy starts a master and its worker before a backend. When it is reloaded, the old
// worker cuts what it still has after this time.
func startHAProxy(t *testing.T, backend string, hardStop time.Duration) *proxy {
	t.Helper()
	addr := freeAddr(t)
	config := fmt.Sprintf(haproxyConfig, hardStop.Milliseconds(), addr, backend)
	return startProxy(t, "haproxy", addr, config, func(_, file string) []string { return []string{"-W", "-f", file} })
}

func TestHAProxyEndsItsOldWorkerWhenItsClientRotates(t *testing.T) {
	for name, way := range map[string]reconnect.Overlap{"Hold": reconnect.OverlapHold, "Mix": reconnect.OverlapMix} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := startNumbers(t)
			p := startHAProxy(t, backend, time.Minute)
			c := p.dialNumbers(t, reconnect.Rotation{Overlap: way, Drain: 100 * time.Millisecond})
			old := c.read()
			p.reload(t, syscall.SIGUSR2)
			for range 100 { // the old worker stays for its client
				require.Equal(t, old, c.read())
			}
			for moved := 0; moved < 100; moved++ {
				if c.read() == old { // by a session that began after the reload, too
					moved = 0
					c.Rotate(c.session(), reconnect.Advice{})
				}
			}
			awaitExit(t, old)
			c.requireSeamless()
		})
	}
}

// Without a rotation the old worker has to cut the connection, and there is a gap.
func TestHAProxyCutsAClientThatDoesNotRotate(t *testing.T) {
	t.Parallel()
	backend := startNumbers(t)
	p := startHAProxy(t, backend, time.Second)
	c := p.dialNumbers(t, reconnect.Rotation{})
	old := c.read()
	p.reload(t, syscall.SIGUSR2)
	for c.read() == old {
	}
	awaitExit(t, old)
	require.Len(t, c.seams(), 1)
	require.False(t, c.seams()[0].Planned || c.seams()[0].Overlapped)
	require.NotEmpty(t, c.missing())
}
