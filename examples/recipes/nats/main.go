// Nats prints each message of a subject of a NATS server. It speaks the text protocol of NATS itself. NATS delivers at
// most once: what is published while the program is away is lost. So the program prints a line that begins with
// "snapshot" when a subscription has begun: nothing is missing from there on, and a snapshot can be fetched there.
//
// Left out of the protocol: TLS, NKEYs and JWT, headers, queue groups, JetStream, publishing, clusters, lame duck mode.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/heartbeat"
)

// protocol is a Framer. A message is a line, and after MSG a payload, whose size is the last word of the line.
type protocol struct{}

func (protocol) AppendFrame(dst, message []byte) ([]byte, error) {
	return append(append(dst, message...), "\r\n"...), nil
}

func (protocol) ReadFrame(r *bufio.Reader, buf []byte, limit int) ([]byte, error) {
	line, err := conn.Lines{}.ReadFrame(r, buf, limit)
	if err != nil || !bytes.HasPrefix(line, []byte("MSG ")) {
		return line, err
	}
	size, err := strconv.Atoi(string(line[bytes.LastIndexByte(line, ' ')+1:]))
	if err != nil || size < 0 {
		return nil, fmt.Errorf("no size: %q", line)
	} else if size > limit-len(line)-3 {
		return nil, &conn.TooBigError{Limit: int64(limit)}
	}
	message, err := conn.ReadBody(r, append(line, '\n'), size+2)
	message, ok := bytes.CutSuffix(message, []byte("\r\n"))
	if err == nil && !ok {
		err = fmt.Errorf("not the size of its payload: %q", line)
	}
	return message, err
}

// subscribe is OnSession. The subscription has begun when the server answers the PING after it.
func subscribe(o *reconnect.Opening, subject string) error {
	err := o.Write(conn.TextMessage("CONNECT {\"verbose\":false,\"lang\":\"redial\"}\r\nSUB " + subject + " 1\r\nPING"))
	for err == nil {
		var m conn.Message
		if m, err = o.Read(); err != nil || string(m.Data) == "PONG" {
			return err
		} else if bytes.HasPrefix(m.Data, []byte("-ERR")) {
			return backoff.Slow(fmt.Errorf("the server refuses: %s", m.Data)) // somebody must mend it
		}
		err = o.Deliver(m) // a message may come before PONG
	}
	return err
}

func probe(_ context.Context, write func(conn.Message) error) error {
	return write(conn.TextMessage("PING"))
}

func follow(url, subject string) error {
	c, err := reconnect.New(&heartbeat.Dialer{
		Dialer: &dialer.Framed{Address: strings.TrimPrefix(url, "nats://"), Framer: protocol{}},
		Answer: func(m conn.Message) (conn.Message, bool) { return conn.TextMessage("PONG"), string(m.Data) == "PING" },
	}, &reconnect.Options{
		OnSession:   func(_ context.Context, o *reconnect.Opening) error { return subscribe(o, subject) },
		Liveness:    reconnect.Liveness{Probe: probe},
		MarkRefetch: true, Run: reconnect.RunOptions{Trace: reconnect.Log(slog.Default())},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	for m, err := range c.Messages(context.Background()) {
		switch seam, ok := errors.AsType[*reconnect.Seam](err); {
		case ok && seam.Refetch:
			output("snapshot: nothing is missing after this line")
		case err != nil && !ok:
			return err
		case bytes.HasPrefix(m.Data, []byte("MSG ")):
			output(string(m.Data[bytes.IndexByte(m.Data, '\n')+1:]))
		}
	}
	return nil
}

// output prints a line, or ends the program with exit code 4, so that a full disk is noticed.
func output(values ...any) {
	if _, err := fmt.Println(values...); err != nil {
		slog.Error("standard output", "err", err)
		os.Exit(4)
	}
}

func main() {
	url := flag.String("url", "nats://127.0.0.1:4222", "the server")
	subject := flag.String("subject", "news", "the subject")
	flag.Parse()
	log.Fatal(follow(*url, *subject))
}
