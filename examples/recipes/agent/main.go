// Agent dials home and runs the commands of its server:
//
//	go run ./agent -url wss://HOST/agents -token FILE -do ./command.sh
//
// The server numbers the commands of an agent, sends one at a time, and sends it again by each connection until it has
// the result. A command runs at most once: the agent stores the number before the command runs, and the result before
// it sends the result. If the agent is killed while a command runs, the result says so. The logins of a day are
// limited, also over restarts. Each login reads the token again. After a refusal the agent logs in again immediately,
// then 10 s and later minutes apart. A result that is too long for the server is shortened, and says so.
//
// Left out: several commands at a time, output of a command that still runs, a journal that does not grow for ever.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

var url = flag.String("url", "ws://127.0.0.1:8080/agents", "the server")
var token = flag.String("token", "token", "the file with the token, which another program renews")
var do = flag.String("do", "echo", "the program to run for each command, with the command as its argument")
var dir = flag.String("dir", ".", "where the journal and the times of the logins are kept")
var limit = flag.Int("limit", 30_000,
	"the longest message that the server accepts, in bytes; halved when the server says that one is too big")
var most = flag.Int("logins", 500, "the most logins in any 24 h")

// message is "login" and its answer "welcome" or "refused", or "run" and its answer "result".
type message struct {
	Op, Text string // Text is the token, the command or its result, or why the login is refused
	ID       uint64 // of the command
	Code     int    // of a refusal, as in HTTP
}

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	logins := must(budget.NewLogins(&budget.LoginsOptions{
		Windows: []budget.Window{{N: *most, Per: 24 * time.Hour}},
		Store:   budget.LoginFile(*dir + "/logins"),
	}))
	journal := must(os.OpenFile(*dir+"/journal", os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_SYNC, 0o600))
	var last message // the result of the last command
	for line := range bytes.Lines(must(os.ReadFile(*dir + "/journal"))) {
		_ = json.Unmarshal(line, &last) // a line that was cut is ignored, so that the line before it counts
	}
	home := must(reconnect.New(&dialer.WebSocket{URL: *url}, &reconnect.Options{
		OnSession: login,
		Run:       reconnect.RunOptions{Logins: logins, Trace: reconnect.Log(slog.Default())},
	}))
	defer home.Close()
	for m, err := range home.Messages(ctx) {
		var q message
		seam, lost := errors.AsType[*reconnect.Seam](err)
		if ctx.Err() != nil {
			return // interrupted
		} else if err != nil && !lost {
			log.Fatal(err)
		} else if lost && tooBig(seam.Cause) {
			*limit = max(*limit/2, 1000) // the server sends the command again
			slog.Warn("result too long for the server", "limit", *limit)
			continue
		} else if lost || json.Unmarshal(m.Data, &q) != nil || q.Op != "run" || q.ID < last.ID {
			continue
		} else if q.ID > last.ID {
			last = message{Op: "result", ID: q.ID, Text: "unknown: the agent has ended while the command ran"}
			must(fmt.Fprintf(journal, "\n%s\n", must(json.Marshal(last))))
			out, failure := exec.CommandContext(ctx, *do, q.Text).CombinedOutput()
			last.Text = fmt.Sprintf("%s (error: %v)", out, failure)
			must(fmt.Fprintf(journal, "\n%s\n", must(json.Marshal(last))))
		}
		_ = home.Write(ctx, must(conn.JSONMessage(fit(last)))) // if it is lost, the server sends the command again
	}
}

// tooBig reports whether the server has ended a session because of a message of ours.
func tooBig(cause error) bool {
	closed, ok := errors.AsType[*conn.CloseError](cause)
	return ok && closed.Code == 1009
}

// fit returns m, with its text shortened until the server accepts the message.
func fit(m message) message {
	const end = 100 // bytes at the end that are kept, because the error is there
	whole := m.Text
	for keep := len(whole) - end; keep > 0 && len(must(json.Marshal(m))) > *limit; {
		keep = keep * 3 / 4
		omitted := len(whole) - end - keep
		m.Text = fmt.Sprintf("%s ... (omitting %d bytes) ... %s", whole[:keep], omitted, whole[len(whole)-end:])
	}
	return m
}

// login logs in. Its Write takes a login from the budget.
func login(_ context.Context, o *reconnect.Opening) error {
	secret, err := os.ReadFile(*token)
	if err != nil {
		return backoff.Slow(err)
	} else if err := o.Write(must(conn.JSONMessage(message{Op: "login", Text: string(secret)}))); err != nil {
		return err
	}
	m, err := o.Read()
	var answer message
	if err = cmp.Or(err, json.Unmarshal(m.Data, &answer)); err != nil || answer.Op == "welcome" {
		return err
	}
	refusal := fmt.Errorf("the login is refused: %d %s", answer.Code, answer.Text)
	if answer.Code == 401 {
		return backoff.Refresh(refusal) // another login follows immediately, with the token of then
	}
	return backoff.Slow(refusal)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
