// Voice sends the sound of its standard input to a voice service, and writes the sound of the service to its standard
// output, over connections that the service ends after some minutes:
//
//	arecord -t raw -f MU_LAW -r 8000 | go run ./voice -url ws://127.0.0.1:8080/voice | aplay -t raw -f MU_LAW -r 8000
//
// The service warns before it ends a connection. Then the call continues by the next connection, to which the service
// moves the sound, while the old one stays open: no frame is missing, and none comes twice. After a loss the call is
// resumed by its handle, and the sound of the time between is missing. A call that the service has forgotten begins
// again, but never after the end of the input: then the call is hung up, if need be by the next connection (perhaps
// twice). Sound that cannot be sent now is dropped, because it would be late. Left out: codecs, a buffer for jitter.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// control is a message that is no sound: setup and hangUp to the service, and ready, goAway and goodbye from it.
type control struct {
	Type     string `json:"type"`
	Handle   string `json:"handle,omitempty"`   // the name of the call
	TimeLeft int    `json:"timeLeft,omitempty"` // of goAway: until the service ends the connection, in ms
}

var hungUp, called atomic.Bool // the input has ended; there is a call
var hangUp = conn.TextMessage(`{"type":"hangUp"}`)
var errOver = errors.New("the call is over")

func main() {
	url := flag.String("url", "ws://127.0.0.1:8080/voice", "the voice service")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	handle := "" // of the call
	line, err := reconnect.New(&dialer.WebSocket{URL: *url}, &reconnect.Options{
		Rotate: reconnect.Rotation{Overlap: reconnect.OverlapMix}, // do not hold the sound of the new session back
		Run:    reconnect.RunOptions{Classify: classify, Trace: reconnect.Log(slog.Default())},
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			if hungUp.Load() && handle == "" {
				return errors.New("dialed too late") // classify ends the program
			}
			setup, _ := conn.JSONMessage(control{Type: "setup", Handle: handle})
			if err := o.Write(setup); err != nil {
				return err
			}
			m, err := o.Read()
			if refusal, ok := errors.AsType[*conn.CloseError](err); ok && refusal.Code == 4004 {
				handle = "" // the service does not know it: the next dial begins a new call
				called.Store(false)
				if hungUp.Load() {
					return backoff.Permanent(errOver)
				}
			}
			var ready control
			if err = cmp.Or(err, json.Unmarshal(m.Data, &ready)); err != nil {
				return err
			} else if ready.Type != "ready" {
				return fmt.Errorf("not an answer to the setup: %.200q", m.Data)
			}
			handle = ready.Handle
			if called.Store(true); hungUp.Load() {
				return o.Write(hangUp)
			}
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer leave(line)
	go speak(ctx, line) // ends with the program
	for m, err := range line.Messages(ctx) {
		var c control
		if _, seam := errors.AsType[*reconnect.Seam](err); seam {
			continue // Trace has logged it
		} else if ctx.Err() != nil || errors.Is(err, errOver) {
			return
		} else if err != nil {
			log.Fatal(err)
		} else if m.Type == conn.Binary {
			if _, err := os.Stdout.Write(m.Data); err != nil {
				slog.Error("standard output", "err", err)
				leave(line)
				os.Exit(4)
			}
		} else if json.Unmarshal(m.Data, &c) == nil && c.Type == "goAway" {
			half := time.Duration(c.TimeLeft) * time.Millisecond / 2 // the next session begins within this
			line.Rotate(m.Session, reconnect.Advice{By: time.Now().Add(half)})
		} else if c.Type == "goodbye" {
			return
		}
	}
}

// classify says that there is nothing to dial for if the input has ended and there is no call.
func classify(err error) backoff.Verdict {
	if hungUp.Load() && !called.Load() && !errors.Is(err, errOver) {
		err = backoff.Permanent(fmt.Errorf("the input has ended, and there is no call: %w", err))
	}
	return backoff.Classify(err)
}

// speak sends the sound of the standard input, and then hangs up.
func speak(ctx context.Context, line *reconnect.Conn) {
	dropped := 0
	sound := make([]byte, 160) // a frame: 20 ms
	for _, err := io.ReadFull(os.Stdin, sound); err == nil; _, err = io.ReadFull(os.Stdin, sound) {
		if line.Write(ctx, conn.Message{Type: conn.Binary, Data: sound}) != nil {
			dropped++
		}
	}
	slog.Info("hanging up", "frames that were not sent", dropped)
	hungUp.Store(true)
	_ = line.Write(ctx, hangUp) // if it is lost, the next session writes it
	line.Kick()
}

// leave hangs up, if there is a connection, and closes it.
func leave(line *reconnect.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	_ = line.Write(ctx, hangUp)
	_ = line.Shutdown(ctx)
}
