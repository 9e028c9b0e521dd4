// Mqtt publishes each line of its standard input with MQTT 5 over a WebSocket, and prints each message of a topic. The
// client is paho.golang, under reconnect.Run. A line is published until the broker acknowledges it (QoS 1), a message
// is acknowledged after it was printed, and either may come twice after a loss. The broker keeps messages for an hour
// while we are away. A line over 64 KiB, or over its limit, is left out: go run ./mqtt -url ws://HOST -topic readings
//
// Left out: a store for lines that were not published when this program ends, QoS 2, retained messages, the will.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/current"
)

var url = flag.String("url", "ws://127.0.0.1:8080", "the broker")
var id = flag.String("id", "recipe", "the client id, which no other client may have")
var topic = flag.String("topic", "recipe", "the topic to publish to, and to print")
var clients current.Of[*client] // holds the present client

type client struct {
	*paho.Client
	limit int // the size of the largest packet that the broker takes
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go publish(ctx) // ends with the program
	ws := &dialer.WebSocket{URL: *url, Subprotocols: []string{"mqtt"}}
	context.AfterFunc(ctx, func() { time.AfterFunc(250*time.Millisecond, func() { os.Exit(0) }) }) // a mute broker
	err := reconnect.Run(ctx, func(ctx context.Context) (net.Conn, error) {
		c, err := ws.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return packets.NewThreadSafeConn(conn.NetConn(c, conn.Binary)), nil // because paho writes a packet in parts
	}, serve, &reconnect.RunOptions{Trace: reconnect.Log(slog.Default())})
	slog.Info("the end", "cause", err)
	if ctx.Err() == nil {
		os.Exit(1) // not interrupted
	}
}

// serve logs in, subscribes, and waits for the end of the connection.
func serve(ctx context.Context, nc net.Conn, s *reconnect.Session) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c := paho.NewClient(paho.ClientConfig{Conn: nc, OnClientError: end,
		OnServerDisconnect: func(d *paho.Disconnect) { end(judged(d.ReasonCode, fmt.Errorf("closed by the broker"))) },
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			if _, err := fmt.Printf("%s\n", p.Packet.Payload); err != nil {
				slog.Error("standard output", "err", err)
				os.Exit(4) // without the acknowledgement, so that the broker keeps the message
			}
			return true, nil
		}}})
	properties := &paho.ConnectProperties{SessionExpiryInterval: new(uint32(3600))} // an hour
	answer, err := c.Connect(ctx, &paho.Connect{ClientID: *id, KeepAlive: 30, Properties: properties})
	if err != nil && answer != nil {
		return judged(answer.ReasonCode, err)
	} else if err != nil {
		return err
	}
	defer c.Disconnect(&paho.Disconnect{}) // waits for its goroutines; an error is that the connection is lost
	topics := []paho.SubscribeOptions{{Topic: *topic, QoS: 1}}
	if _, err := c.Subscribe(ctx, &paho.Subscribe{Subscriptions: topics}); err != nil {
		return err
	}
	s.Ready()
	limit := uint32(256 << 20) // of the protocol
	if answer.Properties != nil && answer.Properties.MaximumPacketSize != nil {
		limit = *answer.Properties.MaximumPacketSize
	}
	ctx, remove := clients.Set(ctx, &client{c, int(limit)})
	defer remove()
	<-ctx.Done() // the program ends, the connection is lost, or a publish has failed
	return context.Cause(ctx)
}

// judged marks an error that lasts until a person acts: a wrong password, no permission, another client with our id.
func judged(code byte, err error) error {
	switch code {
	case packets.ConnackBadUsernameOrPassword, packets.ConnackNotAuthorized, packets.DisconnectSessionTakenOver:
		return backoff.Slow(fmt.Errorf("%w (reason code %#x)", err, code))
	}
	return err
}

func publish(ctx context.Context) {
	for number, line := range lines {
		for again := true; again; {
			c, err := clients.Wait(ctx)
			if err != nil {
				return
			} else if len(line)+len(*topic)+16 > c.limit { // 16: the header of the packet
				slog.Error("line left out: too long for the broker", "line", number, "bytes", len(line))
				break
			}
			answer, err := c.Publish(ctx, &paho.Publish{Topic: *topic, QoS: 1, Payload: []byte(line)})
			if again = err != nil && answer == nil; again {
				clients.Fail(c, err) // ends the session
			} else if err != nil {
				slog.Error("line rejected by the broker", "line", number, "err", err)
			}
		}
	}
	slog.Info("all lines are published")
}

// lines yields the numbered lines of the standard input. A line over 64 KiB is reported and left out.
func lines(yield func(number int, line string) bool) {
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	for number := 1; ; number++ {
		part, long, err := in.ReadLine()
		line := string(part)
		for more := long; more; _, more, err = in.ReadLine() { // skip the rest
		}
		if long {
			slog.Error("line left out: longer than 64 KiB", "line", number, "begins", line[:40])
		} else if err != nil || !yield(number, line) {
			slog.Info("end of input", "err", err)
			return
		}
	}
}
