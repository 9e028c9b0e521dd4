package main

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An adapter is a file that imports a library, apart from that of the brokers, and two more.
func TestNoAdapterIsLongerThan60Lines(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var adapters []string
	for _, name := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") || name == "broker.go" ||
			!slices.ContainsFunc(parsed.Imports, isLibrary) && name != "tcp.go" && name != "loop_session.go" {
			continue
		}
		adapters = append(adapters, name)
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 60, name)
	}
	require.Subset(t, adapters, []string{"coder.go", "gorilla.go", "gws.go", "nats.go", "autopaho.go", "loop.go", "recws.go", "redial.go", "redial_run.go", "redial_framed.go"})
}

func isLibrary(i *ast.ImportSpec) bool {
	path := strings.Trim(i.Path.Value, `"`)
	return strings.Contains(path, ".") && !strings.HasPrefix(path, "github.com/redial-go/redial/bench/")
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
			c, err := p.open(ctx, &target{address: address, up: "up", down: "down", onMessage: func([]byte) {}})
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
