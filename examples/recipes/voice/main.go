// Voice sends the sound of its standard input to a voice service, and writes the sound of the service to its standard
// output, over connections that the service ends after some minutes:
//
//	arecord -t raw -f MU_LAW -r 8000 | go run ./voice -url ws://127.0.0.1:8080/voice | aplay -t raw -f MU_LAW -r 8000
//
// The service warns before it ends a connection. Then the call goes on by the next connection, to which the service moves
// the sound, while the old one stays open: no frame is missing, and none comes twice. After a connection is lost the call
// is resumed by its handle, and the sound of the time between is missing. A call that the service has forgotten begins anew.
//
// Left out: codecs, and a buffer against jitter. Sound that cannot be sent now is dropped, because late sound is of no use.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// control is a message that is no sound: setup and hangUp to the service, and ready, goAway and goodbye from it.
type control struct {
	Type     string `json:"type"`
	Handle   string `json:"handle,omitempty"`   // the name of the call
	TimeLeft int    `json:"timeLeft,omitempty"` // of goAway: until the service ends the connection, in ms
}

const frame = 160 // bytes: 20 ms of sound

func main() {
	url := flag.String("url", "ws://127.0.0.1:8080/voice", "the voice service")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	handle := "" // of the call
	line, err := reconnect.New(&dialer.WebSocket{URL: *url}, &reconnect.Options{
		Rotate: reconnect.Rotation{Overlap: reconnect.OverlapMix}, // so that the reader does not wait for the end of the old session
		Run:    reconnect.RunOptions{Trace: reconnect.Log(slog.Default())},
		OnSession: func(_ context.Context, o *reconnect.Opening) error {
			setup, _ := conn.JSONMessage(control{Type: "setup", Handle: handle})
			if err := o.Write(setup); err != nil {
				return err
			}
			m, err := o.Read()
			if refusal, ok := errors.AsType[*conn.CloseError](err); ok && refusal.Code == 4004 {
				handle = "" // the service does not know it: the next dial begins a new call
			}
			var ready control
			if err = cmp.Or(err, json.Unmarshal(m.Data, &ready)); err == nil {
				handle = ready.Handle
			}
			return err
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer line.Shutdown(ctx)
	go speak(ctx, line) // ends with the program
	for m, err := range line.Messages(ctx) {
		var c control
		if _, seam := errors.AsType[*reconnect.Seam](err); seam {
			continue // Trace has logged it
		} else if err != nil {
			return // interrupted
		} else if m.Type == conn.Binary {
			os.Stdout.Write(m.Data)
		} else if json.Unmarshal(m.Data, &c) == nil && c.Type == "goAway" { // the next session begins within half of the time that is left
			line.Rotate(m.Session, reconnect.Advice{By: time.Now().Add(time.Duration(c.TimeLeft) * time.Millisecond / 2)})
		} else if c.Type == "goodbye" {
			return
		}
	}
}

// speak sends the sound of the standard input, and then hangs up.
func speak(ctx context.Context, line *reconnect.Conn) {
	dropped := 0
	sound := make([]byte, frame)
	for _, err := io.ReadFull(os.Stdin, sound); err == nil; _, err = io.ReadFull(os.Stdin, sound) {
		if line.Write(ctx, conn.Message{Type: conn.Binary, Data: sound}) != nil {
			dropped++
		}
	}
	slog.Info("hanging up", "frames that were not sent", dropped)
	hangUp, _ := conn.JSONMessage(control{Type: "hangUp"})
	for line.AwaitReady(ctx) == nil && line.Write(ctx, hangUp) != nil {
	}
}
