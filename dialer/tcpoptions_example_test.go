package dialer_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/dialer"
)

// TCPOptions say how a socket is made: here for a phone, which should notice soon that its
// network is gone, and for a server that has no name in the DNS.
func ExampleTCPOptions() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		_ = c.Write(r.Context(), websocket.MessageText, []byte("welcome to "+r.Host[:len("feed.internal")]))
		_ = c.CloseNow()
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}

	d := &dialer.WebSocket{
		URL: "ws://feed.internal:" + port,
		TCP: dialer.TCPOptions{
			LookupNetIP: func(ctx context.Context, network, host string) ([]netip.Addr, error) {
				if host == "feed.internal" {
					return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
				}
				return net.DefaultResolver.LookupNetIP(ctx, network, host)
			},
			KeepAlive:   net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}, // default: 15 s, 15 s, 9
			UserTimeout: 20 * time.Second,                                                                              // default: 45 s
		},
	}
	c, err := d.Dial(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseNow()
	m, err := c.Read(nil)
	fmt.Println(string(m.Data), err)
	// Output: welcome to feed.internal <nil>
}
