package reconnect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The policy says how long to wait. This one suits a single trading program: it is back
// soon, and gives up in the end.
func ExampleRunOptions_policy() {
	policy := backoff.First(5*time.Millisecond, // a first wait from [0, 5 ms)
		&backoff.Exponential{Base: 10 * time.Millisecond, Cap: 40 * time.Millisecond}) // then full jitter
	policy = backoff.Limit(policy, 4, time.Minute) // 4 waits, and a minute in all

	dial := func(context.Context) (io.Closer, error) { return nil, errors.New("connection refused") }
	serve := func(context.Context, io.Closer, *reconnect.Session) error { return nil }
	err := reconnect.Run(context.Background(), dial, serve, &reconnect.RunOptions{Policy: policy})
	fmt.Println(err)
	fmt.Println(errors.Is(err, backoff.ErrGaveUp))
	// Output:
	// gave up after 5 tries: connection refused
	// true
}

// Classify says what an error means. By this server's close code 4003 an account is banned,
// so that no further try can help.
func ExampleRunOptions_classify() {
	peer := conntest.NewFake(nil)
	peer.Fail(&conn.CloseError{Code: 4003, Reason: "banned"})

	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer, nil }),
		&reconnect.Options{Run: reconnect.RunOptions{Classify: func(err error) backoff.Verdict {
			if closed, ok := errors.AsType[*conn.CloseError](err); ok && closed.Code == 4003 {
				return backoff.Verdict{Class: backoff.ClassStop}
			}
			return backoff.Classify(err)
		}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-c.Done()
	fmt.Println(c.Err())
	// Output:
	// ended for good: read: closed by the peer: 4003 "banned"
}

// Log writes a line for each session and each wait.
func ExampleLog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr { // times are never twice the same
			if k := a.Value.Kind(); k == slog.KindTime || k == slog.KindDuration {
				return slog.Attr{}
			}
			return a
		},
	}))
	dial := func(ctx context.Context) (net.Conn, error) {
		if backoff.AttemptFrom(ctx).Number == 1 {
			return nil, errors.New("connection refused")
		}
		client, _ := net.Pipe()
		return client, nil
	}
	serve := func(_ context.Context, _ net.Conn, s *reconnect.Session) error {
		s.Ready()
		return backoff.Permanent(errors.New("account closed"))
	}
	_ = reconnect.Run(context.Background(), dial, serve, &reconnect.RunOptions{
		Policy: &backoff.Exponential{Base: time.Millisecond},
		Trace:  reconnect.Log(logger),
	})
	// Output:
	// level=INFO msg="waiting to redial" try=2 verdict=retry cause="connection refused"
	// level=INFO msg="session ready" session=1
	// level=INFO msg="session ended" session=1 cause="account closed"
	// level=WARN msg=ended cause="account closed"
}

// Hooks observe each step. Those that are nil are not called.
func ExampleTrace() {
	dial := func(ctx context.Context) (net.Conn, error) {
		if backoff.AttemptFrom(ctx).Number == 1 {
			return nil, errors.New("connection refused")
		}
		client, _ := net.Pipe()
		return client, nil
	}
	serve := func(_ context.Context, _ net.Conn, s *reconnect.Session) error {
		s.Ready()
		return backoff.Permanent(errors.New("account closed"))
	}
	_ = reconnect.Run(context.Background(), dial, serve, &reconnect.RunOptions{
		Policy: &backoff.Exponential{Base: time.Millisecond},
		Name:   "prices", // every event has it, because several connections may share a Trace
		Trace: &reconnect.Trace{
			DialDone:     func(d reconnect.DialDone) { fmt.Println(d.Name, "dialed:", d.Err) },
			WaitStart:    func(w reconnect.WaitStart) { fmt.Println(w.Name, "waits:", w.Verdict.Class) },
			SessionReady: func(s *reconnect.Session) { fmt.Println(s.Name, "ready: session", s.Number) },
			ConnDone:     func(e reconnect.ConnDone) { fmt.Println(e.Name, "ended:", e.Err) },
		},
	})
	// Output:
	// prices dialed: connection refused
	// prices waits: retry
	// prices dialed: <nil>
	// prices ready: session 1
	// prices ended: account closed
}
