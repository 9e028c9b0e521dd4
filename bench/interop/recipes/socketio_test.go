//go:build linux

package recipes_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func event(line string) string { return `["line" "` + line + `"]` }

func socketURL(address string) string {
	return "ws://" + address + "/socket.io/?EIO=4&transport=websocket"
}

func TestSocketioThroughKills(t *testing.T) {
	s := startNode(t, "socketio", "socket.io")
	r := run(t, "socketio", "-url", socketURL(s.Address))
	liveThroughKills(t, s, r, func(n int) { r.await(n, "^snapshot") }, func(lines ...string) { say(t, s, lines...) }, event)
	require.Len(t, r.matches("^snapshot"), 4, "one for each process of the server")
}

// The connection is cut, and the server lives and goes on sending.
func TestSocketioRecovers(t *testing.T) {
	s := startNode(t, "socketio", "socket.io")
	r := run(t, "socketio", "-url", socketURL(s.Address))
	r.await(1, "^snapshot")
	awaitOutput(t, s, "pong") // the heartbeat was answered
	all := numbered("line", 0, 1000)
	for i := 0; i < 1000; i += 200 {
		say(t, s, all[i:i+100]...)
		say(t, s, "cut")
		say(t, s, all[i+100:i+200]...)
		r.await(i+200, "line [0-9]+")
	}
	var want []string
	for _, line := range all {
		want = append(want, event(line))
	}
	require.Equal(t, want, r.matches("line [0-9]+"), "nothing is lost, nothing comes twice, in order")
	require.Len(t, r.matches("^snapshot"), 1)
}
