//go:build !js

package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/examples/internal/program"
)

// knock opens a connection to a server and writes first.
func knock(t *testing.T, addr, first string) (context.Context, *websocket.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	ws, _, err := websocket.Dial(ctx, "ws://"+addr+"/", nil)
	require.NoError(t, err)
	t.Cleanup(func() { ws.CloseNow() })
	require.NoError(t, ws.Write(ctx, websocket.MessageText, []byte(first)))
	return ctx, ws
}

func TestAClientThatBreaksTheProtocolIsClosed(t *testing.T) {
	t.Parallel()
	_, addr := serveIt(t, "")
	const hello = `{"type":"hello","client":"1","name":"ann"}`
	for _, said := range [][]string{
		{"GET / HTTP/1.0"},
		{`{"type":"say","id":1,"text":"hello"}`},
		{`{"type":"hello","client":"1","name":"\u001b[2J"}`},
		{hello, `{"type":"say","id":1,"text":"` + strings.Repeat("x", maxText+1) + `"}`},
		{hello, `{"type":"welcome","room":"mine"}`},
	} {
		ctx, ws := knock(t, addr, said[0])
		for _, more := range said[1:] {
			require.NoError(t, ws.Write(ctx, websocket.MessageText, []byte(more)))
		}
		var err error
		for err == nil {
			_, _, err = ws.Read(ctx)
		}
		require.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), said)
	}
}

// inside runs play in a bubble, with a server on a network in memory. Out has what the server
// prints.
func inside(t *testing.T, play func(t *testing.T, dial func(name string) *websocket.Conn, out *program.Output)) {
	synctest.Test(t, func(t *testing.T) {
		n := new(conntest.Network)
		l, err := n.Listen("chat:80")
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		out := program.NewOutput(t)
		var server sync.WaitGroup
		server.Go(func() { require.NoError(t, serveOn(ctx, l, "", out)) })
		defer server.Wait()
		defer stop()
		play(t, func(name string) *websocket.Conn {
			transport := &http.Transport{DialContext: n.DialContext, DisableKeepAlives: true}
			ws, _, err := websocket.Dial(t.Context(), "ws://chat:80/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
			require.NoError(t, err)
			if name != "" {
				send(t, ws, message{Type: "hello", Client: name, Name: name})
				out.Await(name + " is here\n")
			}
			return ws
		}, out)
	})
}

func send(t *testing.T, ws *websocket.Conn, m message) {
	t.Helper()
	require.NoError(t, ws.Write(t.Context(), websocket.MessageText, encode(m).Data))
}

// until reads until a message of this type and number arrives.
func until(t *testing.T, ws *websocket.Conn, kind string, id uint64) {
	t.Helper()
	for {
		_, data, err := ws.Read(t.Context())
		require.NoError(t, err)
		if m, err := decode(data); err == nil && m.Type == kind && m.ID == id {
			return
		}
	}
}

// The server cuts a member off when its queue is full.
func TestAMemberThatDoesNotReadDelaysNoOther(t *testing.T) {
	inside(t, func(t *testing.T, dial func(string) *websocket.Conn, out *program.Output) {
		slow, ann := dial("slow"), dial("ann")
		defer slow.CloseNow()
		defer ann.CloseNow()
		begun := time.Now()
		for id := uint64(1); !strings.Contains(out.String(), "slow reads too slowly and is cut off\n"); id++ {
			require.Less(t, id, uint64(10000))
			send(t, ann, message{Type: "say", ID: id, Text: "hello"})
			until(t, ann, "ack", id)
		}
		require.Equal(t, begun, time.Now(), "no member waited")
	})
}

func TestAStuckWriteEndsAtTheWriteLimit(t *testing.T) {
	inside(t, func(t *testing.T, dial func(string) *websocket.Conn, out *program.Output) {
		slow, ann := dial("slow"), dial("ann")
		defer slow.CloseNow()
		defer ann.CloseNow()
		for id := range uint64(1000) { // more than the window and the queue hold
			send(t, ann, message{Type: "say", ID: id + 1, Text: strings.Repeat("x", 200)})
			until(t, ann, "ack", id+1)
		}
		begun := time.Now()
		out.Await("slow is gone\n")
		require.Equal(t, writeLimit, time.Since(begun))
	})
}

func TestAConnectionWithoutAHelloEndsAtTheHelloLimit(t *testing.T) {
	inside(t, func(t *testing.T, dial func(string) *websocket.Conn, _ *program.Output) {
		ws := dial("")
		defer ws.CloseNow()
		begun := time.Now()
		_, _, err := ws.Read(t.Context())
		require.Error(t, err)
		require.Equal(t, helloLimit, time.Since(begun))
	})
}

func TestAMemberThatDoesNotAnswerDelaysTheEndForTheInterruptLimitAtMost(t *testing.T) {
	var begun time.Time
	inside(t, func(t *testing.T, dial func(string) *websocket.Conn, _ *program.Output) {
		dial("mute") // it does not read, so it does not answer a close frame
		begun = time.Now()
		t.Cleanup(func() { require.LessOrEqual(t, time.Since(begun), command.InterruptLimit) })
	})
}
