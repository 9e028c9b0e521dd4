//go:build linux

package recipes_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

// startMosquitto starts mosquitto with a listener for WebSocket.
func startMosquitto(t *testing.T) *server.Server {
	path, dir := server.Find(t, "mosquitto", "/usr/sbin/mosquitto"), t.TempDir()
	file := filepath.Join(dir, "mosquitto.conf")
	s := server.New(t, func(port string) *exec.Cmd {
		text := fmt.Sprintf("listener %s 127.0.0.1\nprotocol websockets\nallow_anonymous true\nuser root\n", port) +
			"listener 0 " + filepath.Join(dir, "socket") + "\n" // version 2.0.11 does not start with WebSocket alone
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return exec.Command(path, "-c", file)
	})
	s.Start()
	return s
}

// mosquitto keeps everything in memory, so a kill may lose the message that it has acknowledged to the publisher
// and not passed on yet. It is one, because the recipe publishes one line after the other.
func TestMQTT(t *testing.T) {
	const kills = 2
	broker := startMosquitto(t)
	p := pipe(t, "mqtt", "-url", "ws://"+broker.Address, "-id", "counter", "-topic", "numbers")
	var sent []string
	for i := range kills + 1 {
		lines := numbered("number", 300*i, 300*(i+1))
		p.feed(lines...)
		sent = append(sent, lines...)
		if i < kills {
			eventually(t, "a third has come", func() bool { return len(p.lines()) > 300*i+100 })
			broker.Kill()
			broker.Start()
		}
	}
	require.NoError(t, p.in.Close())
	p.noted(1, "all lines are published")
	eventually(t, "the last line comes", func() bool { return p.lines()[len(p.lines())-1] == sent[len(sent)-1] })
	lost, doubled := tally(p.lines(), sent)
	t.Logf("%d lines over %d kills of mosquitto: lost %v, doubled %v", len(sent), kills, lost, doubled)
	require.LessOrEqual(t, len(lost), kills)
	require.LessOrEqual(t, len(doubled), kills)

	came := len(p.lines())
	p.kill() // the broker keeps what is published now
	other := p.twin("-url", "ws://"+broker.Address, "-id", "other", "-topic", "numbers")
	away := numbered("away", 0, 20)
	other.feed(away...)
	require.NoError(t, other.in.Close())
	other.noted(1, "all lines are published")
	other.interrupt()
	p.startFull() // it acknowledges nothing that it has not printed
	p.waitFull()
	p.start()
	eventually(t, "what was kept comes", func() bool { return len(p.lines()) >= came+len(away) })
	p.interrupt()
	require.Equal(t, away, p.lines()[came:])
}
