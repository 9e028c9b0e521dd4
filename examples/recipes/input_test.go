//go:build linux

package recipes_test

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A line of input that a recipe cannot take costs itself only. It is named.
func TestOcppLeavesBadLinesOut(t *testing.T) {
	const noServer = "ws://127.0.0.1:1"
	p := start(t, "ocpp", "-url", noServer, "-store", filepath.Join(t.TempDir(), "events"))
	long := `{"text":"` + strings.Repeat("x", 70_000) + `"}`
	p.Type(`{"event":1}`, "not JSON", `["no object"]`, "null", long, `{"event":2}`)
	p.WantLines("stored", "stored")
	for _, note := range []string{"line=2", "line=3", "line=4", "line=5"} {
		p.Await(note)
	}
	require.Equal(t, 4, strings.Count(p.String(), "line left out"))
	requireRunning(t, p)
}

// A line that is empty or no text is sent as it is, and one that is too long is named.
func TestLinesSendsAnyLine(t *testing.T) {
	address := serveRaw(t, func(c net.Conn, _ int) { _, _ = io.Copy(c, c) })
	p := start(t, "lines", "talk", "-addr", address)
	p.Type("one", strings.Repeat("x", 70_000), "\xff\x00\xfe", "", "two")
	p.CloseInput()
	require.Equal(t, 1, p.ExitCode())
	require.Equal(t, "one\n\xff\x00\xfe\n\ntwo\n", p.Out.String())
	p.Await("lines that were not sent: 1")
}
