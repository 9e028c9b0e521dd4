// Amqp publishes each line of its standard input to a queue of RabbitMQ, and prints each message of that queue. The
// client is amqp091-go, under reconnect.Run: go run ./amqp -url amqp://guest:guest@127.0.0.1:5672/ -queue orders
//
// A line is published until the broker has confirmed it, and a message is acknowledged after it was printed. So after a
// loss nothing is missing, but a line or a message may come twice: "again" stands before a message that came before.
//
// Left out: a store for lines that were read and not published when this program ends, exchanges, dead letters, lines over 64 KiB.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/current"
)

var url, queue = flag.String("url", "amqp://guest:guest@127.0.0.1:5672/", "the broker"), flag.String("queue", "recipe", "a durable queue, which is made if there is none")
var channels current.Of[*amqp.Channel] // holds the present channel

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go publish(ctx, bufio.NewScanner(os.Stdin)) // ends with the program
	slog.Info("the end", "cause", reconnect.Run(ctx, dial, serve, &reconnect.RunOptions{Classify: classify, Trace: reconnect.Log(slog.Default())}))
}

type connection struct{ *amqp.Connection }

// Close ends the connection within 2 s, also if the broker does not answer.
func (c connection) Close() error { return c.CloseDeadline(time.Now().Add(2 * time.Second)) }

// dial connects and logs in, with a limit of 16 s on each.
func dial(context.Context) (connection, error) {
	c, err := amqp.DialConfig(*url, amqp.Config{Dial: amqp.DefaultDial(16 * time.Second)})
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
		fmt.Printf("%s%s\n", map[bool]string{true: "again "}[m.Redelivered], m.Body)
		_ = m.Ack(false) // its error is that the channel is closed, which ends the loop
	}
	if len(closed) > 0 {
		return <-closed
	}
	return cmp.Or(context.Cause(ctx), errors.New("the broker has ended the consumer: was the queue deleted?"))
}

// classify says that a person has to act if the broker does not permit what we want, or has another kind of queue.
func classify(err error) backoff.Verdict {
	if e, ok := errors.AsType[*amqp.Error](err); ok && (e.Code == amqp.AccessRefused || e.Code == amqp.NotAllowed || e.Code == amqp.PreconditionFailed) {
		err = backoff.Slow(err)
	}
	return backoff.Classify(err)
}

func publish(ctx context.Context, lines *bufio.Scanner) {
	for more := lines.Scan(); more; {
		ch, err := channels.Wait(ctx)
		if err != nil {
			return
		}
		if p, err := ch.PublishWithDeferredConfirm("", *queue, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: lines.Bytes()}); err == nil && p.Wait() {
			more = lines.Scan()
		} else { // the connection is lost, or the broker refuses the message
			channels.Fail(ch, cmp.Or(err, errors.New("the broker has not confirmed a message"))) // ends the session
		}
	}
	slog.Info("all lines are published", "error", lines.Err())
}
