package main

import (
	"context"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// redial over TCP with a length before each message, by OnMessage; it sends with Send.
var redialFramedPeers = []*peer{{
	name: "redial-framed", protocol: framedTCP, redials: true, share: shareFramed,
	open: func(ctx context.Context, t *target) (client, error) {
		d := t.shared
		if d == nil {
			d = shareFramed(t)
		}
		return openRedial(ctx, t, d.(reconnect.Dialer), &reconnect.Options{
			OnMessage: func(_ context.Context, m reconnect.Message) { t.onMessage(m.Data) },
			OnSeam:    func(_ context.Context, s *reconnect.Seam) { t.gap(s) },
			Outbox:    outbox,
		}, nil)
	},
}}

func shareFramed(t *target) any {
	return &dialer.Framed{Address: t.address, Framer: conn.LengthPrefix{}, TLS: t.tls}
}
