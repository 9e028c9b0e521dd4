package peers

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// adapters are the files that a user of a library would have to write, apart from what
// two adapters of one library have in common.
var adapters = []string{"coder.go", "coder_read.go", "gorilla.go", "gws.go", "tcp.go", "redial.go", "redial_conn.go", "redial_run.go", "redial_framed.go",
	"loop.go", "loop_session.go", "recws.go", "nats.go", "autopaho.go"}

func TestNoAdapterIsLongerThan60Lines(t *testing.T) {
	for _, name := range adapters {
		text, err := os.ReadFile(filepath.Join(name))
		require.NoError(t, err)
		require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 60, name)
	}
}

func TestEachPeerHasANameOfItsOwn(t *testing.T) {
	names := Names()
	slices.Sort(names)
	require.Equal(t, names, slices.Compact(slices.Clone(names)))
	for _, name := range names {
		p, err := findPeer(name)
		require.NoError(t, err)
		require.Equal(t, name, p.name)
		require.False(t, strings.ContainsAny(name, " ,./"), name) // a topic, and a part of a list
	}
}

// Nothing listens: each open returns an error, no later than its context ends.
func TestAnUnreachableServerIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			c, err := p.open(ctx, &target{address: address, up: "up", down: "down", onMessage: ignore})
			require.Error(t, err)
			require.Nil(t, c)
		})
	}
}

// A server that takes connections and says nothing: the job ends with its limit, and what
// it has opened is closed.
func TestAServerThatNeverAnswersIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() }) // when the parallel tests have ended
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			j := job{Peers: []string{p.name}, Addresses: map[protocol]string{p.protocol: l.Addr().String()}, Size: 128, Count: 5, Limit: 200 * time.Millisecond}
			_, err := new(local).do(context.Background(), order{Do: "receive", Job: j})
			require.Error(t, err)
		})
	}
}
