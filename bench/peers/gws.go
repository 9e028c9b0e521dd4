package main

import (
	"context"
	"sync"

	"github.com/lxzan/gws"
)

// lxzan/gws alone: it does not redial.
var gwsPeers = []*peer{{name: "gws", protocol: webSocket, takeover: true, open: openGWS}}

type gwsClient struct {
	gws.BuiltinEventHandler
	target *target
	conn   *gws.Conn
	reader sync.WaitGroup
}

func openGWS(_ context.Context, t *target) (client, error) {
	c := &gwsClient{target: t}
	var err error
	o := &gws.ClientOption{Addr: t.url("ws", "wss")}
	if t.takeover {
		o.PermessageDeflate.Enabled = true
		o.PermessageDeflate.ServerContextTakeover, o.PermessageDeflate.ClientContextTakeover = true, true
	}
	if t.tls != nil {
		o.TlsConfig = t.tls.Clone()
	}
	if c.conn, _, err = gws.NewClient(c, o); err != nil {
		return nil, err
	}
	c.reader.Go(c.conn.ReadLoop) // Close waits for it
	t.isUp()
	return c, nil
}

func (c *gwsClient) OnMessage(_ *gws.Conn, m *gws.Message) {
	c.target.onMessage(m.Bytes())
	_ = m.Close() // gives the buffer back
}

func (c *gwsClient) OnClose(_ *gws.Conn, err error) { c.target.isDown(err) }

func (c *gwsClient) Send(p []byte) error { return c.conn.WriteMessage(gws.OpcodeBinary, p) }

func (c *gwsClient) Close() { _ = c.conn.NetConn().Close(); c.reader.Wait() }
