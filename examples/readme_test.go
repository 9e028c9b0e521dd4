//go:build !js && !windows

// Package examples_test runs the program of README.md.
package examples_test

import (
	"bufio"
	"go/format"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// program writes the first program of a document to a file, and returns the path.
func program(t *testing.T, document string) string {
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```go\n(package main.*?)```").FindSubmatch(text)
	require.NotNil(t, block, "%s has no program", document)
	formatted, err := format.Source(block[1])
	require.NoError(t, err)
	require.Equal(t, string(formatted), string(block[1]), "as gofmt has it")
	path := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(path, block[1], 0o600))
	return path
}

// feed answers the subscription of each connection. When it may go on it sends a message, and closes
// the connection.
func feed(goOn <-chan struct{}) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		_, subscription, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if c.Write(r.Context(), websocket.MessageText, []byte("subscribed")) != nil {
			return
		}
		<-goOn
		if c.Write(r.Context(), websocket.MessageText, append([]byte("event for "), subscription...)) == nil {
			c.Close(websocket.StatusGoingAway, "that was all")
		}
	}))
}

func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	goOn := make(chan struct{})
	s := feed(goOn)
	defer s.Close()
	defer close(goOn)
	binary := os.Getenv("REDIAL_PROGRAM") // .ci/stranger has built it from a release
	if binary == "" {
		binary = filepath.Join(t.TempDir(), "readme")
		out, err := exec.Command("go", "build", "-o", binary, program(t, "../README.md")).CombinedOutput()
		require.NoError(t, err, string(out))
	}

	run := exec.CommandContext(t.Context(), binary, "ws"+strings.TrimPrefix(s.URL, "http"))
	stdout, err := run.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	lines := bufio.NewScanner(stdout)
	for range 2 { // sessions
		for _, want := range []string{"fetch a snapshot here", `event for {"op":"subscribe"}`, "something may be missing here: "} {
			require.True(t, lines.Scan(), "it ended before %q", want)
			require.Contains(t, lines.Text(), want)
			if strings.HasPrefix(want, "fetch") {
				goOn <- struct{}{}
			}
		}
	}
	require.NoError(t, run.Process.Signal(os.Interrupt))
	for lines.Scan() {
		if strings.Contains(lines.Text(), "interrupt") || strings.Contains(lines.Text(), "canceled") {
			require.NoError(t, run.Wait(), "the exit code")
			return
		}
	}
	t.Fatal("it printed no reason for its end")
}

// The first block of README.md is part of a program: it compiles within the text below, and is short
// enough for a first screen.
func TestTheFragmentOfTheReadmeCompiles(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, block)
	fragment := string(block[1])
	require.LessOrEqual(t, strings.Count(fragment, "\n"), 15, "lines")
	formatted, err := format.Source(block[1])
	require.NoError(t, err)
	require.Equal(t, string(formatted), fragment, "as gofmt has it")
	path := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(path, []byte(`package main

import (
	"context"
	"fmt"
	"log"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

func main() {
	ctx := context.Background()
`+fragment+"}\n"), 0o600))
	out, err := exec.Command("go", "vet", path).CombinedOutput()
	require.NoError(t, err, string(out))
}

// README.md fits on a first screen: the file and its cells are short. Each of its links leads to a file.
func TestTheReadmeIsAFirstScreen(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.LessOrEqual(t, len(lines), 120)
	for _, line := range lines {
		if strings.HasPrefix(line, "|") {
			for _, cell := range strings.Split(line, "|") {
				require.LessOrEqual(t, len(strings.TrimSpace(cell)), 120, line)
			}
		}
	}
	for _, document := range []string{"../README.md", "../reconnect/README.md"} {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+)`).FindAllStringSubmatch(prose, -1) {
			if _, err := os.Stat("recipes"); err != nil && strings.HasPrefix(link[1], "examples/recipes/") {
				continue // a checkout, or a release, without that module
			}
			_, err := os.Stat(filepath.Join(filepath.Dir(document), link[1]))
			require.NoError(t, err, document)
		}
	}
}
