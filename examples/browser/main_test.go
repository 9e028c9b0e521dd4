//go:build !js

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestItServesThePageUntilItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() { // <-code waits for it
		code <- run(ctx, nil, in, in)
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
	require.Zero(t, <-code)
	http.DefaultClient.CloseIdleConnections()
}

func TestAnInterruptDuringTheBuildIsNoFailure(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out bytes.Buffer
	require.Zero(t, run(ctx, nil, &out, &out))
	require.Equal(t, "building the page ...\n", out.String())
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"-port", "1"}} {
		var out bytes.Buffer
		require.Equal(t, 2, run(t.Context(), args, &out, &out))
		require.NotEmpty(t, out.String())
	}
	var out bytes.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"-addr", "127.0.0.1:nonsense"}, &out, &out))
	require.Contains(t, out.String(), "browser: ")
	require.Zero(t, run(t.Context(), []string{"-h"}, &out, &out))
}
