package main

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// feedTopic is where a broker publishes the numbered messages.
const feedTopic = "feed"

// agents are those of a broker's clients, by the topic that each has of its own.
type agents struct {
	site *site
	send func(topic string, p []byte) error

	mu     sync.Mutex // guards what follows
	agents map[string]*agent
}

// take does what a message to the topic "up", a separator and a name asks. Answers go to
// "down" and the rest.
func (a *agents) take(topic string, p []byte) {
	down := "down" + strings.TrimPrefix(topic, "up")
	a.mu.Lock()
	one := a.agents[down]
	if one == nil {
		now := func(p []byte) error { return a.send(down, p) }
		one = &agent{reset: a.site.reset, wake: a.site.wake, now: now, reply: func(p []byte, times int) error {
			for range times {
				if err := a.send(down, p); err != nil {
					return err
				}
			}
			return nil
		}}
		a.agents[down] = one
	}
	a.mu.Unlock()
	_ = one.take(p) // what is missing then is an error at the client
}

// serveNATS embeds nats-server. It has a listener of its own, since it takes no other;
// d is in front of it where connections are reset, and otherwise only reserves a port.
func (s *site) serveNATS(d *door) error {
	o := &natsserver.Options{Host: s.setup.Host, Port: -1, NoLog: true, NoSigs: true, MaxConn: 1 << 20, MaxPending: 4 << 30, TLSConfig: s.tls, TLSTimeout: 10}
	if !s.setup.Resets {
		_, port, err := net.SplitHostPort(d.Addr().String())
		if err != nil {
			return err
		}
		if o.Port, err = strconv.Atoi(port); err != nil {
			return err
		}
		if err := d.Close(); err != nil {
			return err
		}
	}
	server, err := natsserver.NewServer(o)
	if err != nil {
		return err
	}
	go server.Start() // until the process ends
	if !server.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("nats-server is not ready after 10 s")
	}
	if s.setup.Resets {
		go relay(d, server.Addr().String()) // until the process ends
	}
	inside, err := nats.Connect("", nats.InProcessServer(server))
	if err != nil {
		return err
	}
	all := &agents{site: s, agents: map[string]*agent{}, send: inside.Publish}
	s.publish = append(s.publish, func(p []byte) error {
		if err := inside.Publish(feedTopic, p); err != nil {
			return err
		}
		return inside.Flush()
	})
	if _, err := inside.Subscribe("up.>", func(m *nats.Msg) { all.take(m.Subject, m.Data) }); err != nil {
		return err
	}
	return inside.Flush()
}

// relay hands the connections of l on.
func relay(l net.Listener, address string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() { // until the connection ends
			defer c.Close()
			to, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			var back sync.WaitGroup
			back.Go(func() { _, _ = io.Copy(c, to); _ = c.Close() })
			_, _ = io.Copy(to, c)
			_ = to.Close()
			back.Wait()
		}()
	}
}

// serveMQTT embeds mochi-mqtt.
func (s *site) serveMQTT(l net.Listener) error {
	limits := mqtt.NewDefaultServerCapabilities()
	if s.setup.Deep {
		limits.MaximumClientWritesPending = 1 << 20 // by default what is beyond 8,192 messages is dropped
	}
	limits.MaximumClients = math.MaxInt32
	server := mqtt.New(&mqtt.Options{InlineClient: true, Capabilities: limits, ClientNetWriteBufferSize: 64 << 10, Logger: slog.New(slog.DiscardHandler)})
	if err := server.AddHook(new(auth.AllowHook), nil); err != nil {
		return err
	}
	if err := server.AddListener(listeners.NewNet("door", l)); err != nil {
		return err
	}
	send := func(topic string, p []byte) error { return server.Publish(topic, p, false, 0) }
	all := &agents{site: s, agents: map[string]*agent{}, send: send}
	s.publish = append(s.publish, func(p []byte) error { return send(feedTopic, p) })
	if err := server.Serve(); err != nil {
		return err
	}
	return server.Subscribe("up/#", 1, func(_ *mqtt.Client, _ packets.Subscription, pk packets.Packet) {
		all.take(pk.TopicName, pk.Payload)
	})
}
