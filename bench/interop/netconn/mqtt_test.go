package netconn

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	server "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/dialer"
)

// broker starts mochi's broker, with a listener for WebSocket, and returns its address.
func broker(t *testing.T, address string) (s *server.Server, at string) {
	s = server.New(&server.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, s.AddHook(new(auth.AllowHook), nil))
	l := listeners.NewWebsocket(listeners.Config{ID: "ws", Address: address})
	require.NoError(t, s.AddListener(l))
	require.NoError(t, s.Serve())
	return s, l.Address()
}

// free returns an address on which nobody listens.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// autopaho publishes to itself through a broker over WebSocket, which is stopped and started again: every
// message with QoS 1 comes back, and the errors of refused dials meanwhile are those of package dialer.
func TestAutopahoOverANetConn(t *testing.T) {
	const messages, size = 200, 5000
	address := free(t)
	first, _ := broker(t, address)
	d := &dialer.WebSocket{URL: "ws://" + address, Subprotocols: []string{"mqtt"}}
	u, err := url.Parse(d.URL)
	require.NoError(t, err)

	var mu sync.Mutex // guards what follows
	got := map[string]int{}
	var refused []error
	complete := make(chan struct{})
	subscribed := make(chan error, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{u}, KeepAlive: 5, CleanStartOnInitialConnection: true, SessionExpiryInterval: 60,
		ReconnectBackoff: func(int) time.Duration { return 10 * time.Millisecond },
		AttemptConnection: func(ctx context.Context, _ autopaho.ClientConfig, _ *url.URL) (net.Conn, error) {
			c, err := dial(ctx, d)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, err)
				return nil, err
			}
			return packets.NewThreadSafeConn(c), nil // because paho writes a packet in several parts
		},
		OnConnectionUp: func(m *autopaho.ConnectionManager, _ *paho.Connack) {
			_, err := m.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: "numbers", QoS: 1}}})
			subscribed <- err
		},
		ClientConfig: paho.ClientConfig{ClientID: "both", OnPublishReceived: []func(paho.PublishReceived) (bool, error){
			func(p paho.PublishReceived) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				number, _, _ := bytes.Cut(p.Packet.Payload, []byte{' '})
				if got[string(number)]++; len(got) == messages && got[string(number)] == 1 {
					close(complete)
				}
				return true, nil
			},
		}},
	})
	require.NoError(t, err)
	publish := func(i int) { // until the broker has taken it
		for payload := fmt.Appendf(nil, "%d %*d", i, size, 0); ; {
			require.NoError(t, m.AwaitConnection(ctx))
			_, err := m.Publish(ctx, &paho.Publish{Topic: "numbers", QoS: 1, Payload: payload})
			if err == nil {
				return
			}
			require.NoError(t, ctx.Err(), "%v", err)
		}
	}
	require.NoError(t, <-subscribed)
	for i := range messages / 2 {
		publish(i)
	}
	// The broker passes on what it has taken before it ends.
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == messages/2 }, 30*time.Second, time.Millisecond)
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(refused) > 0 }, 30*time.Second, time.Millisecond)
	second, _ := broker(t, address)
	defer second.Close()
	require.NoError(t, <-subscribed)
	for i := messages / 2; i < messages; i++ {
		publish(i)
	}
	select {
	case <-complete:
	case <-ctx.Done():
		mu.Lock()
		t.Errorf("%d of %d messages came", len(got), messages)
		mu.Unlock()
	}
	require.NoError(t, m.Disconnect(ctx))
	mu.Lock()
	defer mu.Unlock()
	var failure *dialer.Error
	require.ErrorAs(t, refused[0], &failure)
	t.Logf("%d dials were refused: %v", len(refused), failure)
}
