package mqtt_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	server "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"
)

const topic = "numbers"

// broker is mochi's, one after another, and what they have seen.
type broker struct {
	t *testing.T

	mu       sync.Mutex // guards what follows
	server   *server.Server
	address  string
	taken    []string // in the order in which the broker took them, before it acknowledged each
	got      []string // by the subscriber, to whom this broker gives them after the acknowledgement, so that those of two connections can overtake each other
	wire     map[*server.Client]*wire
	repeated int // packets with DUP
	brokers  int
}

// wire is what one connection has brought.
type wire struct {
	present bool            // the broker had the session
	seen    map[string]bool // the payloads
}

// start starts a broker that knows no session.
func (b *broker) start() {
	s := server.New(&server.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b.t, s.AddHook(new(auth.AllowHook), nil))
	require.NoError(b.t, s.AddHook(&watch{b: b}, nil))
	require.NoError(b.t, s.Subscribe(topic, 1, func(_ *server.Client, _ packets.Subscription, pk packets.Packet) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.got = append(b.got, string(pk.Payload))
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b.t, err)
	require.NoError(b.t, s.AddListener(listeners.NewNet("tcp", l)))
	require.NoError(b.t, s.Serve())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server, b.address = s, l.Addr().String()
	b.brokers++
}

// stop ends the broker, and everything that it knows.
func (b *broker) stop() {
	b.mu.Lock()
	s := b.server
	b.mu.Unlock()
	require.NoError(b.t, s.Close())
}

func (b *broker) at() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.address
}

// complete reports whether the subscriber got n different messages.
func (b *broker) complete(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.got) < n {
		return false
	}
	different := map[string]bool{}
	for _, text := range b.got {
		different[text] = true
	}
	return len(different) == n
}

// watch is a hook that sees the packets of a broker.
type watch struct {
	server.HookBase
	b *broker
}

func (w *watch) ID() string { return "watch" }

func (w *watch) Provides(hook byte) bool {
	return bytes.Contains([]byte{server.OnPacketRead, server.OnPublish, server.OnPacketEncode}, []byte{hook})
}

// OnPacketEncode sees the CONNACK before it goes out. There it also repairs this broker (v2.7.9),
// which passes a message on only after it has written the PUBACK. If that write fails, it keeps the
// PUBACK, and sends it in the next connection, so that a message is acknowledged that no subscriber
// ever gets.
func (w *watch) OnPacketEncode(cl *server.Client, pk packets.Packet) packets.Packet {
	if pk.FixedHeader.Type == packets.Connack {
		for _, kept := range cl.State.Inflight.GetAll(false) {
			if kept.FixedHeader.Type == packets.Puback {
				cl.State.Inflight.Delete(kept.PacketID)
			}
		}
		w.b.mu.Lock()
		defer w.b.mu.Unlock()
		w.b.wire[cl] = &wire{present: pk.SessionPresent, seen: map[string]bool{}}
	}
	return pk
}

// OnPacketRead checks that nothing comes twice by one connection, and that DUP is set only where the
// session goes on.
func (w *watch) OnPacketRead(cl *server.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.FixedHeader.Type != packets.Publish {
		return pk, nil
	}
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	c, payload := w.b.wire[cl], string(pk.Payload)
	switch {
	case c == nil:
		w.b.t.Error("PUBLISH before CONNACK")
	case c.seen[payload]:
		w.b.t.Errorf("%s came twice by one connection", payload)
	case pk.FixedHeader.Dup && !c.present:
		w.b.t.Errorf("%s has DUP in a new session", payload)
	case pk.FixedHeader.Dup:
		w.b.repeated++
	}
	if c != nil {
		c.seen[payload] = true
	}
	return pk, nil
}

// OnPublish notes a message that the broker takes.
func (w *watch) OnPublish(_ *server.Client, pk packets.Packet) (packets.Packet, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.b.taken = append(w.b.taken, string(pk.Payload))
	return pk, nil
}

// cutting is a connection that is cut after so many bytes in either direction.
type cutting struct {
	net.Conn
	mu   sync.Mutex // guards left
	left int
}

func (c *cutting) take(n int) (allowed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	allowed = min(n, c.left)
	c.left -= allowed
	return allowed
}

func (c *cutting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.take(n) < n {
		c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func (c *cutting) Write(p []byte) (int, error) {
	allowed := c.take(len(p))
	n, err := c.Conn.Write(p[:allowed])
	if err == nil && n < len(p) {
		c.Close()
		return n, io.ErrClosedPipe
	}
	return n, err
}
