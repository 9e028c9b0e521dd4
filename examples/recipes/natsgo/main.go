// Natsgo prints each message of a subject by nats.go, the client library of NATS, over a dialer of redial. The library
// keeps the subscription and dials again. From redial come the waits, with full jitter, and the sockets: each try looks
// the name up again, lets the addresses race, and has a limit. nats.go alone waits 2.0 to 2.1 s, so that all clients of
// a server come back together.
//
// NATS delivers at most once. When a subscription has begun the program prints a line that begins with "snapshot":
// nothing is missing from there on, and a snapshot can be fetched there.
//
// The server must be trusted, because nats.go v1.55.0 does not check the size of a message: the line
// "MSG news 1 99999999999999999999" causes a panic in a goroutine of nats.go, which ends the program, and another wrong
// size causes a wrong message. The recipe nats checks it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect/backoff"
)

// sockets is a nats.CustomDialer.
type sockets struct{ dialer.Dialer }

func (s *sockets) Dial(network, address string) (net.Conn, error) {
	return s.DialContext(context.Background(), network, address) // MaxElapsed bounds it
}

func follow(url, subject string) error {
	closed, waits := make(chan error, 2), &backoff.Exponential{} // 1 s at most before the first try, up to 64 s later
	began := func(c *nats.Conn) {
		if err := c.FlushTimeout(10 * time.Second); err != nil { // waits until the server has the subscription
			log.Print(err)
			return
		}
		output("snapshot: nothing is missing after this line")
	}
	c, err := nats.Connect(url,
		nats.SetCustomDialer(&sockets{dialer.Dialer{MaxElapsed: time.Second}}), // then nats.go asks the next server
		nats.CustomReconnectDelay(func(tries int) time.Duration {
			step, _ := waits.Next(backoff.History{N: tries - 1}, backoff.Rand())
			return step.Wait
		}),
		nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		// nats.go calls it for each failed dial, but only for the first failed handshake.
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { log.Print("not connected: ", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { log.Print("disconnected: ", err) }),
		nats.ReconnectHandler(began), // nats.go has subscribed again
		nats.ConnectHandler(func(c *nats.Conn) {
			if _, err := c.Subscribe(subject, func(m *nats.Msg) { output(string(m.Data)) }); err != nil {
				closed <- err
			}
			began(c)
		}),
		nats.ClosedHandler(func(c *nats.Conn) { closed <- c.LastError() }),
	)
	if err != nil {
		return err
	}
	defer c.Close()
	return <-closed
}

// output prints a line, or ends the program with exit code 4, so that a full disk is noticed.
func output(values ...any) {
	if _, err := fmt.Println(values...); err != nil {
		slog.Error("standard output", "err", err)
		os.Exit(4)
	}
}

func main() {
	url := flag.String("url", "nats://127.0.0.1:4222", "the server, or several with commas between")
	subject := flag.String("subject", "news", "the subject")
	flag.Parse()
	log.Fatal(follow(*url, *subject))
}
