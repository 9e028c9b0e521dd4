// Mqtt publishes each line of its standard input with MQTT 5 over a WebSocket, and prints each message of a topic. The
// client is paho.golang, under reconnect.Run: go run ./mqtt -url ws://127.0.0.1:8080 -id meter-7 -topic readings
//
// A line is published until the broker has acknowledged it (QoS 1), and a message is acknowledged after it was printed.
// So a line or a message may come twice after a loss. The broker keeps our messages for an hour while we are away.
//
// Left out: a store for lines that were read and not published when this program ends, QoS 2, retained messages, the will, lines over
// 64 KiB, several publishes at a time. A broker that is killed may lose messages that it has acknowledged: see its configuration.
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
var clients current.Of[*paho.Client] // holds the present client

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go publish(ctx, bufio.NewScanner(os.Stdin)) // ends with the program
	ws := &dialer.WebSocket{URL: *url, Subprotocols: []string{"mqtt"}}
	slog.Info("the end", "cause", reconnect.Run(ctx, func(ctx context.Context) (net.Conn, error) {
		c, err := ws.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return packets.NewThreadSafeConn(conn.NetConn(c, conn.Binary)), nil // because paho writes a packet in parts
	}, serve, &reconnect.RunOptions{Trace: reconnect.Log(slog.Default())}))
}

// serve logs in, subscribes, and waits for the end of the connection.
func serve(ctx context.Context, nc net.Conn, s *reconnect.Session) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	client := paho.NewClient(paho.ClientConfig{Conn: nc, OnClientError: end,
		OnServerDisconnect: func(d *paho.Disconnect) { end(judged(d.ReasonCode, fmt.Errorf("the broker says goodbye"))) },
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			fmt.Printf("%s\n", p.Packet.Payload) // the acknowledgement follows
			return true, nil
		}}})
	if answer, err := client.Connect(ctx, &paho.Connect{ClientID: *id, KeepAlive: 30, Properties: &paho.ConnectProperties{SessionExpiryInterval: new(uint32(3600))}}); err != nil && answer != nil {
		return judged(answer.ReasonCode, err)
	} else if err != nil {
		return err
	}
	defer client.Disconnect(&paho.Disconnect{}) // waits for its goroutines; an error is that the connection is lost
	if _, err := client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: *topic, QoS: 1}}}); err != nil {
		return err
	}
	s.Ready()
	ctx, remove := clients.Set(ctx, client)
	defer remove()
	<-ctx.Done() // the program ends, the connection is lost, or a publish has failed
	return context.Cause(ctx)
}

// judged marks an error that lasts until a person acts: a wrong password, no permission, another client with our id.
func judged(code byte, err error) error {
	if code == packets.ConnackBadUsernameOrPassword || code == packets.ConnackNotAuthorized || code == packets.DisconnectSessionTakenOver {
		return backoff.Slow(fmt.Errorf("%w (reason code %#x)", err, code))
	}
	return err
}

func publish(ctx context.Context, lines *bufio.Scanner) {
	for lines.Scan() {
		for again := true; again; {
			client, err := clients.Wait(ctx)
			if err != nil {
				return
			}
			answer, err := client.Publish(ctx, &paho.Publish{Topic: *topic, QoS: 1, Payload: lines.Bytes()})
			if again = err != nil && answer == nil; again {
				clients.Fail(client, err) // ends the session
			} else if err != nil {
				slog.Error("the broker refuses a line", "line", lines.Text(), "cause", err)
			}
		}
	}
	slog.Info("all lines are published", "error", lines.Err())
}
