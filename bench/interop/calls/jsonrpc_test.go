package calls_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/calls"
	"github.com/redial-go/redial/reconnect"
)

// startRPC runs the server of go-ethereum.
func startRPC(t *testing.T) (context.Context, *program, *calls.JSONRPC) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	server := start(ctx, t, func() *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), peerEnv+"=1")
		return c
	})
	client, err := calls.NewJSONRPC()
	require.NoError(t, err)
	server.open(&reconnect.Options{Layers: []*reconnect.Layer{client.Calls.Layer()}})
	return ctx, server, client
}

func TestJSONRPCWhileTheServerIsKilledAndComesBack(t *testing.T) {
	ctx, server, client := startRPC(t)
	l := &load{t: t, server: server, stats: client.Calls.Stats}
	l.ask = func(ctx context.Context, again bool, question string, after int) (string, error) {
		return text(client.Ask(ctx, again, "oracle_say", question, after))
	}
	l.run(ctx, 4)
}

func TestAnErrorOfAJSONRPCServerIsAnAnswer(t *testing.T) {
	ctx, _, client := startRPC(t)
	_, err := client.Ask(ctx, false, "oracle_unknown")
	var refused *calls.RPCError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, -32601, refused.Code)
	require.Equal(t, uint64(1), client.Calls.Stats().Answered)
}
