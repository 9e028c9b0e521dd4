//go:build linux

package recipes_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The exchange leaves out one message in 40, and is killed twice. Each line that a recipe prints must be a state that
// the book had, in order; in the end the books must be those of the exchange.
func TestBook(t *testing.T)         { testBook(t, "book", "/ws", "-ping", "1s") }
func TestBookSnapshot(t *testing.T) { testBook(t, "booksnapshot", "/stream") }

func testBook(t *testing.T, name, path string, args ...string) {
	truth := filepath.Join(t.TempDir(), "truth")
	x := startPeer(t, "exchange", truth)
	if name == "booksnapshot" {
		args = append(args, "-http", "http://"+x.Address+"/depth")
	}
	p := pipe(t, name, append(args, "-url", "ws://"+x.Address+path, "BTC", "ETH")...)
	for kill := range 3 {
		before := len(p.lines())
		eventually(t, "1000 more lines come", func() bool { return len(p.lines()) > before+1000 })
		if kill < 2 {
			x.Kill()
			x.Start()
		}
	}
	r, err := http.Get("http://" + x.Address + "/halt")
	require.NoError(t, err)
	r.Body.Close()
	last := map[string]string{}
	eventually(t, "the books are those of the exchange", func() bool {
		want := lastOf(linesOf(t, truth))
		last = lastOf(p.lines())
		return fmt.Sprint(last) == fmt.Sprint(want)
	})
	p.interrupt()

	had := map[string]bool{}
	for _, line := range linesOf(t, truth) {
		had[line] = true
	}
	wrong, back := 0, 0
	at := map[string]string{}
	for _, line := range p.lines() {
		if !had[line] {
			wrong++
		}
		fields := strings.Fields(line)
		if fields[1] < at[fields[0]] { // the numbers have the same length
			back++
		}
		at[fields[0]] = fields[1]
	}
	losses := strings.Count(p.read(".notes"), "session ready") - 1 // each session but the first follows a loss
	t.Logf("%d of %d states were printed over %d losses: %d wrong, %d out of order", len(p.lines()), len(had), losses, wrong, back)
	require.Zero(t, wrong)
	require.Zero(t, back)
	if name == "book" {
		require.NotEmpty(t, linesOf(t, truth+".pings"))
	}
}

// lastOf returns the last line of each symbol.
func lastOf(lines []string) map[string]string {
	last := map[string]string{}
	for _, line := range lines {
		symbol, rest, _ := strings.Cut(line, " ")
		last[symbol] = rest
	}
	return last
}
