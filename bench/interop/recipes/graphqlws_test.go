//go:build linux

package recipes_test

import (
	"path/filepath"
	"testing"
)

const linesQuery = "subscription { lines }"

func TestGraphqlws(t *testing.T) {
	s := startNode(t, "../calls/graphql", "graphql-ws", filepath.Join(t.TempDir(), "log"))
	r := run(t, "graphqlws", "-url", "ws://"+s.Address, linesQuery)
	// The server confirms no subscription, so its output says when one has begun.
	begun := func(n int) {
		r.await(n, "^snapshot")
		awaitOutput(t, s, "subscribed")
	}
	form := func(line string) string {
		return `{"id":"` + linesQuery + `","type":"next","payload":{"data":{"lines":"` + line + `"}}}`
	}
	liveThroughKills(t, s, r, begun, func(lines ...string) { say(t, s, lines...) }, form)
	say(t, s, "end")
	r.await(1, `"type":"complete"`)
}
