// Amqp publishes each line of its standard input to a queue of RabbitMQ, and prints each message of that queue. The
// client is amqp091-go, under reconnect.Run: go run ./amqp -url amqp://guest:guest@127.0.0.1:5672/ -queue orders
//
// A line is published until the broker has confirmed it, and a message is acknowledged after it was printed. So
// after a loss nothing is missing, but a line or a message may come twice. A line over 64 KiB is reported and
// left out. The exit code is 4 if the standard output fails.
//
// Left out: a store for lines that were read and not published when this program ends, exchanges, dead letters.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/current"
)

var url = flag.String("url", "amqp://guest:guest@127.0.0.1:5672/", "the broker")
var queue = flag.String("queue", "recipe", "a durable queue, which is made if there is none")
var channels current.Of[*amqp.Channel] // holds the present channel

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go publish(ctx) // ends with the program
	options := &reconnect.RunOptions{Classify: classify, Trace: reconnect.Log(slog.Default())}
	err := reconnect.Run(ctx, dial, serve, options)
	slog.Info("the end", "cause", err)
	if ctx.Err() == nil {
		os.Exit(1) // not interrupted
	}
}

type connection struct{ *amqp.Connection }

// Close ends the connection within 250 ms, also if the broker does not answer.
func (c connection) Close() error { return c.CloseDeadline(time.Now().Add(250 * time.Millisecond)) }

// dial connects and logs in, within 16 s each.
func dial(ctx context.Context) (connection, error) {
	stop := func() bool { return true }
	defer func() { stop() }()
	c, err := amqp.DialConfig(*url, amqp.Config{Dial: func(network, address string) (net.Conn, error) {
		nc, err := (&net.Dialer{Timeout: 16 * time.Second}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		stop = context.AfterFunc(ctx, func() { nc.Close() }) // because amqp091-go knows no context
		return nc, nc.SetDeadline(time.Now().Add(16 * time.Second))
	}})
	return connection{c}, err
}

// serve makes the queue ready, and prints its messages until the end of the connection.
func serve(ctx context.Context, c connection, s *reconnect.Session) error {
	limit := time.AfterFunc(10*time.Second, func() { c.Close() }) // RabbitMQ may leave a question without an answer
	ch, err := c.Channel()
	if err != nil {
		return err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	_, err = ch.QueueDeclare(*queue, true, false, false, false, nil)
	err = cmp.Or(err, ch.Confirm(false), ch.Qos(10, 0, false)) // 10 messages wait for our acknowledgement at most
	messages, last := ch.Consume(*queue, "", false, false, false, false, nil)
	if err := cmp.Or(err, last); err != nil {
		return err
	}
	limit.Stop()
	s.Ready()
	ctx, remove := channels.Set(ctx, ch)
	defer remove()
	defer context.AfterFunc(ctx, func() { c.Close() })() // a publish has failed
	for m := range messages {
		if _, err := fmt.Printf("%s\n", m.Body); err != nil { // m.Redelivered says that it may have come before
			slog.Error("standard output", "err", err)
			os.Exit(4) // without the acknowledgement, so that the broker keeps the message
		}
		_ = m.Ack(false) // its error is that the channel is closed, which ends the loop
	}
	if len(closed) > 0 {
		return <-closed
	}
	return cmp.Or(context.Cause(ctx), errors.New("the broker has ended the consumer: was the queue deleted?"))
}

// classify says that a person has to act if the broker does not permit what we want, or has another kind of queue.
func classify(err error) backoff.Verdict {
	e, ok := errors.AsType[*amqp.Error](err)
	if ok && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed || e.Code == amqp.PreconditionFailed) {
		err = backoff.Slow(err)
	}
	return backoff.Classify(err)
}

func publish(ctx context.Context) {
	for number, line := range lines {
		message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(line)}
		for confirmed := false; !confirmed; {
			ch, err := channels.Wait(ctx)
			if err != nil {
				return
			}
			p, err := ch.PublishWithDeferredConfirm("", *queue, false, false, message)
			if confirmed = err == nil && p.Wait(); !confirmed { // lost, or rejected: end the session
				channels.Fail(ch, cmp.Or(err, fmt.Errorf("line %d: not confirmed by the broker", number)))
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
