package rotate

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Layers returns how long a Conn takes for a message, if it has so many layers that do not take
// it. The connection below costs next to nothing, so that the layers show. The message has 128
// bytes, and OnMessage does nothing with it.
func Layers(ctx context.Context, layers, messages int) (time.Duration, error) {
	o := &reconnect.Options{Liveness: reconnect.Liveness{Limit: -1}}
	kept := 0
	for range layers {
		o.Layers = append(o.Layers, &reconnect.Layer{Receive: func(m reconnect.Message) bool {
			kept += len(m.Data)
			return false
		}})
	}
	var begun time.Time
	var took time.Duration
	n := 0
	done := make(chan struct{})
	o.OnMessage = func(context.Context, reconnect.Message) {
		switch n++; n {
		case 1:
			begun = time.Now()
		case messages:
			took = time.Since(begun)
			close(done)
		}
	}
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		return &stock{left: messages, closed: make(chan struct{})}, nil
	}), o)
	if err != nil {
		return 0, err
	}
	defer func() { c.Close(); <-c.Done() }()
	select {
	case <-done:
	case <-c.Done():
		return 0, c.Err()
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if kept != layers*messages*messageBytes {
		return 0, fmt.Errorf("measure %d layers: they have seen %d bytes of %d messages", layers, kept, messages)
	}
	return took / time.Duration(messages-1), nil
}

var _ conn.Transport = (*stock)(nil)

// stock is a connection that has so many messages at once, and then none.
type stock struct {
	left   int
	data   [messageBytes]byte
	closed chan struct{}
	once   sync.Once
}

func (s *stock) Read(buf []byte) (conn.Message, error) {
	return s.ReadBuffer(func(int) []byte { return buf })
}

// ReadBuffer copies, as every connection does.
func (s *stock) ReadBuffer(buffer func(size int) []byte) (conn.Message, error) {
	if s.left == 0 {
		<-s.closed
		return conn.Message{}, net.ErrClosed
	}
	s.left--
	return conn.Message{Type: conn.Binary, Data: append(buffer(messageBytes)[:0], s.data[:]...)}, nil
}

func (s *stock) Write(conn.Message) error { return nil }

func (s *stock) WriteBatch(ms []conn.Message) (int, error) { return len(ms), nil }

func (s *stock) BeforeBlock(func()) bool { return false }

func (s *stock) Silence() time.Duration { return 0 }

func (s *stock) HungUp() bool { return false }

func (s *stock) LocalAddr() net.Addr { return nil }

func (s *stock) Close(context.Context, int, string) error { return s.CloseNow() }

func (s *stock) CloseNow() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
