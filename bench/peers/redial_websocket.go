package main

import (
	"github.com/coder/websocket"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

func shareWebSocket(t *target) any {
	d := &dialer.WebSocket{URL: t.url("ws", "wss"), TLS: t.tls}
	if t.takeover {
		d.Compression = websocket.CompressionContextTakeover
	}
	return d
}

func webSocketDialer(t *target) reconnect.Dialer {
	if t.shared != nil {
		return t.shared.(reconnect.Dialer)
	}
	return shareWebSocket(t).(reconnect.Dialer)
}
