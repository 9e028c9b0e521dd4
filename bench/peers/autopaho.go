package main

import (
	"context"
	"net/url"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"
)

// autopaho: MQTT 5 at QoS 0. It has no default for its keep-alive; its examples have 20 s.
var autopahoPeers = []*peer{{name: "autopaho", protocol: mqtt5, redials: true, open: openAutopaho}}

type autopahoClient struct {
	manager *autopaho.ConnectionManager
	up      string
	cancel  context.CancelFunc
}

func openAutopaho(ctx context.Context, t *target) (client, error) {
	own, cancel := context.WithCancel(context.Background())
	c, first := &autopahoClient{up: t.up, cancel: cancel}, newFirst()
	address, err := url.Parse(t.url("mqtt", "tls"))
	if err != nil {
		cancel()
		return nil, err
	}
	o := autopaho.ClientConfig{
		ServerUrls: []*url.URL{address}, TlsCfg: t.tls, KeepAlive: 20, CleanStartOnInitialConnection: true,
		OnConnectionUp: func(m *autopaho.ConnectionManager, _ *paho.Connack) {
			_, err := m.Subscribe(own, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: t.down}}})
			if err == nil {
				t.isUp()
			}
			first.fail(err)
		},
		OnConnectionDown: func() bool { t.isDown(nil); return true },
		ClientConfig: paho.ClientConfig{ClientID: t.up, OnPublishReceived: []func(paho.PublishReceived) (bool, error){
			func(p paho.PublishReceived) (bool, error) { t.onMessage(p.Packet.Payload); return true, nil },
		}},
	}
	if t.wait > 0 {
		o.ReconnectBackoff = func(int) time.Duration { return t.wait }
	}
	if c.manager, err = autopaho.NewConnection(own, o); err != nil {
		cancel()
		return nil, err
	}
	return first.wait(ctx, c)
}

func (c *autopahoClient) Send(p []byte) error {
	_, err := c.manager.Publish(context.Background(), &paho.Publish{Topic: c.up, Payload: p})
	return err
}

func (c *autopahoClient) Close() { c.cancel(); <-c.manager.Done() }
