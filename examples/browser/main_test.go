//go:build !js

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/examples/internal/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItServesThePageUntilItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() { // <-ended waits for it
		ended <- run(ctx, nil, command.Streams{Out: in})
		in.Close()
	}()
	var said []byte
	address := regexp.MustCompile(`open (http://127\.0\.0\.1:\d+/) \(\d+\.\d MB of program, \d+\.\d MB compressed\)`)
	for buf := make([]byte, 1000); address.FindSubmatch(said) == nil; {
		n, err := out.Read(buf)
		require.NoError(t, err, "%s", said)
		said = append(said, buf[:n]...)
	}
	go io.Copy(io.Discard, out) // it ends with in
	answer, err := http.Get(string(address.FindSubmatch(said)[1]))
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	interrupt()
	require.NoError(t, <-ended)
	http.DefaultClient.CloseIdleConnections()
}

func TestAnInterruptDuringTheBuildIsNoFailure(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out bytes.Buffer
	require.NoError(t, run(ctx, nil, command.Streams{Out: &out}))
	require.Equal(t, "building the page ...\n", out.String())
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"-port", "1"}} {
		var wrong *command.UsageError
		require.ErrorAs(t, run(t.Context(), args, command.Streams{}), &wrong)
	}
	require.ErrorContains(t, run(t.Context(), []string{"-addr", "127.0.0.1:nonsense"}, command.Streams{}), "nonsense")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A server that cannot print its address exits.
func TestAFullDiskEndsIt(t *testing.T) {
	var failed *command.OutputError
	require.ErrorAs(t, run(t.Context(), nil, command.Streams{Out: fullDisk{}}), &failed)
}
