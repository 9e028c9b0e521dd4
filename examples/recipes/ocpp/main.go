// Ocpp delivers the TransactionEvents of a charging station to its CSMS by OCPP 2.0.1, with the waits of OCPP. Each
// line of the standard input is the payload of one:
//
//	go run ./ocpp -url ws://127.0.0.1:9000/ocpp/station-1 -store station.db
//
// An event is on the disk when "stored" is printed. It is sent, one CALL at a time, until the CSMS has answered: again
// after a loss and a restart, and when the next event has waited 30 s for the answer. So the CSMS may get it twice, and
// recognizes it by transactionId and seqNo. After a CALLERROR an event is reported and dropped. A line that is not a
// JSON object, or is over 64 KiB, is reported and left out. There is no shutdown: a station runs until its power fails.
//
// Left out: Heartbeat (pings of WebSocket do that), a status Pending, and CALLs of the CSMS (answered NotImplemented).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/ledger"
	"github.com/redial-go/redial/reconnect/ledger/boltstore"
	bolt "go.etcd.io/bbolt"
)

var line *reconnect.Conn // to the CSMS
var events *ledger.Ledger

func main() {
	url := flag.String("url", "ws://127.0.0.1:9000/ocpp/station-1", "the CSMS, and the name of the station")
	file := flag.String("store", "station.db", "the file with the events")
	var waits backoff.OCPP
	flag.DurationVar(&waits.WaitMinimum, "wait", 10*time.Second, "RetryBackOffWaitMinimum")
	flag.DurationVar(&waits.RandomRange, "random", 10*time.Second, "RetryBackOffRandomRange")
	flag.Parse()
	db := must(boltstore.Open(*file, 0o600, &bolt.Options{Timeout: time.Second}))
	events = must(ledger.New(&ledger.Options{
		Store:    must(boltstore.New(db, "events")),
		Messages: 1 << 16,
		Encode:   encode,
		Ack:      ack,
	}))
	must(reconnect.New(&dialer.WebSocket{URL: *url, Subprotocols: []string{"ocpp2.0.1"}}, &reconnect.Options{
		Layers:    []*reconnect.Layer{{Start: func(c *reconnect.Conn) error { line = c; return nil }}, events.Layer()},
		OnSession: boot,
		OnMessage: func(ctx context.Context, m reconnect.Message) {
			if kind, id := decode(m.Data); kind == 2 {
				_ = line.WriteTo(ctx, m.Session, must(conn.JSONMessage([]any{4, id, "NotImplemented", "", struct{}{}})))
			}
		},
		Run: reconnect.RunOptions{Policy: &waits, Trace: reconnect.Log(slog.Default())}}))
	for number, text := range lines {
		var event map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &event); err != nil || event == nil {
			slog.Error("line left out: not a JSON object", "line", number, "err", err)
			continue
		}
		must(events.AddWait(context.Background(), must(json.Marshal(json.RawMessage(text)))))
		if _, err := fmt.Println("stored"); err != nil {
			slog.Error("standard output", "err", err)
			os.Exit(4)
		}
	}
	select {} // deliver what is stored
}

func boot(_ context.Context, o *reconnect.Opening) error {
	wrote := o.Write(conn.TextMessage(`[2,"boot","BootNotification",` +
		`{"reason":"Unknown","chargingStation":{"model":"recipe","vendorName":"redial"}}]`))
	m, err := o.Read() // fails if the write has failed
	answer := map[string]any{}
	if _ = json.Unmarshal(m.Data, &[3]any{new(int), new(string), &answer}); answer["status"] == "Accepted" {
		return nil
	}
	interval, _ := answer["interval"].(float64) // 0 if there is no answer
	err = errors.Join(wrote, err, fmt.Errorf("the CSMS does not accept this station: %s", m.Data))
	return backoff.RetryAfter(err, time.Duration(interval)*time.Second)
}

// encode waits until the event before has its answer, or its session has ended.
func encode(e ledger.Entry) (conn.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	defer line.Watch(&reconnect.Trace{SessionDone: func(reconnect.SessionDone) { cancel() }})()
	if err := events.Wait(ctx, e.ID-1); errors.Is(err, context.DeadlineExceeded) {
		line.Redial(line.Status().Session, errors.New("the CSMS has not answered for 30 s"))
	}
	return conn.JSONMessage([]any{2, fmt.Sprint(e.Seq), "TransactionEvent", json.RawMessage(e.Data)})
}

func ack(m reconnect.Message) (seq uint64, ok bool) {
	kind, id := decode(m.Data)
	_, err := fmt.Sscan(id, &seq)
	if kind == 4 {
		slog.Error("the CSMS refuses an event", "answer", string(m.Data))
	}
	return seq, err == nil && kind > 2
}

// decode returns the type of a message (2 CALL, 3 CALLRESULT, 4 CALLERROR) and its id.
func decode(data []byte) (kind int, id string) {
	_ = json.Unmarshal(data, &[2]any{&kind, &id})
	return kind, id
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

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
