package calls_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/calls"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// startGraphQL runs the server of graphql-ws.
func startGraphQL(t *testing.T) (context.Context, *program, *calls.GraphQL, *reconnect.Conn) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("Node is not installed")
	}
	if _, err := os.Stat("graphql/node_modules/graphql-ws"); err != nil {
		t.Skip("graphql-ws is not installed: run npm ci in bench/interop/calls/graphql")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	server := start(ctx, t, func() *exec.Cmd { return exec.Command(node, "graphql/server.mjs") })
	client, err := calls.NewGraphQL()
	require.NoError(t, err)
	c := server.open(&reconnect.Options{
		OnSession: client.Init, Layers: []*reconnect.Layer{client.Calls.Layer()},
	}, calls.Subprotocol)
	return ctx, server, client, c
}

// say asks the server to say a text after so many ms.
func say(ctx context.Context, g *calls.GraphQL, again bool, id, words string, after int) (string, error) {
	const query = "query ($text: String!, $after: Int!) { say(text: $text, after: $after) }"
	data, err := g.Ask(ctx, again, id, query, map[string]any{"text": words, "after": after})
	if err != nil {
		return "", err
	}
	var answer struct{ Say json.RawMessage }
	err = json.Unmarshal(data, &answer)
	return text(answer.Say, err)
}

func TestGraphQLWhileTheServerIsKilledAndComesBack(t *testing.T) {
	ctx, server, client, _ := startGraphQL(t)
	l := &load{t: t, server: server, stats: client.Calls.Stats}
	var last atomic.Int64
	l.ask = func(ctx context.Context, again bool, question string, after int) (string, error) {
		return say(ctx, client, again, fmt.Sprintf("question-%d", last.Add(1)), question, after)
	}
	l.run(ctx, 2)
}

// The protocol demands that such a server closes with 4409.
func TestAnIDThatTheServerStillWorksOnIsNotUsedAgain(t *testing.T) {
	ctx, server, client, c := startGraphQL(t)
	require.NoError(t, c.AwaitReady(ctx))
	short, cancel := context.WithCancel(ctx)
	given := make(chan error, 1)
	go func() { _, err := say(short, client, false, "mine", "slow", 3_600_000); given <- err }()
	for server.asked()["slow"] == 0 {
		require.NoError(t, ctx.Err())
		time.Sleep(time.Millisecond)
	}
	_, err := say(ctx, client, false, "mine", "second", 0)
	require.ErrorIs(t, err, call.ErrIDInUse)
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	_, err = say(ctx, client, false, "mine", "third", 0)
	require.ErrorIs(t, err, call.ErrIDInUse, "though nobody waits for the first any more")
	got, err := say(ctx, client, false, "other", "fourth", 0)
	require.NoError(t, err)
	require.Equal(t, "fourth", got)
	require.Equal(t, uint64(1), c.Stats().Sessions)
	// Past the Client, so that it is clear what the server would do.
	require.NoError(t, c.Write(ctx, conn.TextMessage(`{"id":"mine","type":"subscribe","payload":{"query":"{__typename}"}}`)))
	require.Eventually(t, func() bool { return c.Stats().Sessions == 2 }, 30*time.Second, 10*time.Millisecond)
	got, err = say(ctx, client, true, "mine", "fifth", 0)
	require.NoError(t, err)
	require.Equal(t, "fifth", got, "the new session does not know the id")
}
