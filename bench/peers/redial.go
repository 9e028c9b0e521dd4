package main

import (
	"context"
	"errors"

	"github.com/redial-go/redial/reconnect"
)

// redial over WebSocket: by OnMessage, by Read into a buffer that is used again, and by Messages. The first and the last send with SendWait,
// the second with Write. A client by Messages that sends one message at a time has no use for a queue, and sends with Write.
var redialPeers = []*peer{
	{name: "redial-push", protocol: webSocket, redials: true, takeover: true, share: shareWebSocket,
		open: func(ctx context.Context, t *target) (client, error) {
			return openRedial(ctx, t, webSocketDialer(t), &reconnect.Options{
				OnMessage: func(_ context.Context, m reconnect.Message) { t.onMessage(m.Data) },
				OnSeam:    func(_ context.Context, s *reconnect.Seam) { t.gap(s) },
				Outbox:    outbox,
			}, nil)
		}},
	{name: "redial-read", protocol: webSocket, redials: true, takeover: true, share: shareWebSocket,
		open: func(ctx context.Context, t *target) (client, error) {
			return openRedial(ctx, t, webSocketDialer(t), &reconnect.Options{}, func(c *reconnect.Conn) {
				m, err := c.Read(context.Background(), nil)
				for t.take(m, err) {
					m, err = c.Read(context.Background(), m.Data)
				}
			})
		}},
	{name: "redial-messages", protocol: webSocket, redials: true, takeover: true, share: shareWebSocket,
		open: func(ctx context.Context, t *target) (client, error) {
			o := &reconnect.Options{}
			if !t.oneByOne {
				o.Outbox = outbox
			}
			return openRedial(ctx, t, webSocketDialer(t), o, func(c *reconnect.Conn) {
				for m, err := range c.Messages(context.Background()) {
					t.take(m, err)
				}
			})
		}},
}

// take passes on what Read has returned. It reports whether to read on.
func (t *target) take(m reconnect.Message, err error) bool {
	seam, isSeam := errors.AsType[*reconnect.Seam](err)
	switch {
	case isSeam:
		t.gap(seam)
	case err == nil:
		t.onMessage(m.Data)
	}
	return isSeam || err == nil
}
