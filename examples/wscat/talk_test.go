//go:build !js

package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/terminal"
	"github.com/redial-go/redial/reconnect"
)

// The first line is kept, the second one waits for room, and the others are read and wait behind it.
func TestEachLineThatWasReadByTheEndGetsItsFate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, notes := reported(reporter{}, func(r *reporter) {
			c := makeClient(&options{linger: -1, max: 10}, r)
			var err error
			c.conn, err = reconnect.New(reconnect.DialFunc(func(ctx context.Context) (conn.Conn, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}), &reconnect.Options{WhenDown: reconnect.WhenDownKeep, Outbox: reconnect.Outbox{OnReceipt: c.settle, Messages: 1}})
			require.NoError(t, err)
			ctx, interrupt := context.WithCancel(t.Context())
			more, keyboard := io.Pipe()
			listened := make(chan struct{})
			go func() {
				defer close(listened)
				c.listen(ctx, io.MultiReader(strings.NewReader("one\ntwo\nthree\nfour\nhalf"), more))
			}()
			synctest.Wait()
			require.Equal(t, 2, c.typed)
			interrupt()
			<-listened
			require.NoError(t, keyboard.Close())
			require.Equal(t, 4, c.typed)
			require.Equal(t, 1, c.unsettled())
			c.conn.Close()
			<-c.conn.Done()
			require.Zero(t, c.unsettled())
		})
		require.Equal(t, `-- not sent: context canceled: "two"
-- not sent: context canceled: "three"
-- not sent: context canceled: "four"
-- not sent: the end came first: "one"
`, notes)
	})
}

// lingering returns after what time the program leaves with -q 1s, and what it wrote by then to out.
// Messages come at times.
func lingering(t *testing.T, out io.Writer, times ...time.Duration) (after time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		peer := conntest.NewFake(nil)
		r := &reporter{out: terminal.NewPlain(out), notes: terminal.NewPlain(io.Discard)}
		r.start(nil)
		c := makeClient(&options{linger: time.Second, max: 10}, r)
		var err error
		c.conn, err = reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return peer.Conn(), nil }), nil)
		require.NoError(t, err)
		require.NoError(t, c.conn.AwaitReady(t.Context()))
		go c.receive()
		start := time.Now()
		for _, at := range times {
			time.AfterFunc(at, func() { peer.Deliver(conn.TextMessage("x")) })
		}
		c.listen(t.Context(), strings.NewReader(""))
		after = time.Since(start)
		c.conn.Close()
		<-c.received
		r.close()
	})
	return after
}

func TestSilenceBeginsAgainWithEachMessage(t *testing.T) {
	var out strings.Builder
	require.Equal(t, time.Second, lingering(t, &out))
	require.Equal(t, 2750*time.Millisecond, lingering(t, &out, 900*time.Millisecond, 1600*time.Millisecond), "seen at 1.75 s")
	require.Equal(t, "x\nx\n", out.String())
}

// stuck is a pipe that nobody reads for 10.1 s.
type stuck struct{ once sync.Once }

func (s *stuck) Write(b []byte) (int, error) {
	s.once.Do(func() { time.Sleep(10100 * time.Millisecond) })
	return len(b), nil
}

// One line is being written, and 64 wait in the screen. The next one waits to be shown.
func TestAPipeThatNobodyReadsIsNoSilence(t *testing.T) {
	times := []time.Duration{0}
	for range 100 {
		times = append(times, time.Millisecond)
	}
	require.Equal(t, 11250*time.Millisecond, lingering(t, &stuck{}, times...), "seen at 10.25 s")
}

// After a stop the reader has not read what came meanwhile.
func TestALookThatIsLateFindsNoSilence(t *testing.T) {
	var s silence
	for range looks - 1 {
		require.False(t, s.look(0, 0, false))
	}
	require.False(t, s.look(0, 0, true))
	for range looks - 1 {
		require.False(t, s.look(0, 0, false))
	}
	require.True(t, s.look(0, 0, false))
}

// A server that does not answer the close frame is left after command.InterruptLimit if a signal has ended
// ctx, and else after leaveLimit.
func TestAMuteServerIsLeftSoonAfterAnInterrupt(t *testing.T) {
	for _, interrupted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			network := new(conntest.Network)
			over := make(chan struct{})
			mute := func(context.Context, *websocket.Conn, *http.Request) { <-over }
			server := conntest.NewServer(network, "h:80", mute)
			defer server.Close()
			defer close(over)
			r := &reporter{out: terminal.NewPlain(io.Discard), notes: terminal.NewPlain(io.Discard)}
			r.start(nil)
			defer r.close()
			c := makeClient(&options{linger: -1, max: 10}, r)
			var err error
			c.conn, err = reconnect.New(&dialer.WebSocket{URL: "ws://h/", DialContext: network.DialContext}, nil)
			require.NoError(t, err)
			require.NoError(t, c.conn.AwaitReady(t.Context()))
			go c.receive()
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			want := leaveLimit
			if interrupted {
				interrupt()
				want = command.InterruptLimit
			}
			begun := time.Now()
			c.leave(ctx, interrupted)
			require.Equal(t, want, time.Since(begun))
			<-c.received
		})
	}
}
