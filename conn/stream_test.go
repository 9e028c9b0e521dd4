package conn

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// A flood of 30 s comes in at once, because the machine is busy and takes 1 ms for each frame.
func TestAFloodOfControlFramesIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := plain(t, nil)
		l.onPong = func() { time.Sleep(time.Millisecond) }
		read := l.reading()
		l.send(strings.Repeat(frame(fin|pong, ""), 30_000), tail)
		for range 290 {
			sleep(t, second/10)
			require.LessOrEqual(t, l.Silence(), maxAnswers*time.Millisecond)
		}
		require.NoError(t, read())
	})
}

// Allocations stand for the cost; BenchmarkFlood has the CPU.
func TestAFloodOfControlFramesCostsNoMoreThanCodersOwn(t *testing.T) {
	for name, op := range map[string]byte{"pongs": pong, "pings": ping} {
		t.Run(name, func(t *testing.T) {
			ours := plain(t, nil)
			theirs, ws := coders(t, websocket.CompressionDisabled, untapped)
			flood := strings.Repeat(frame(fin|op, ""), 5000) + tail
			cost := func(l *link, read func() error) float64 {
				return testing.AllocsPerRun(5, func() {
					l.send(flood)
					require.NoError(t, read())
				})
			}
			got := cost(ours, func() error { _, err := ours.Read(nil); return err })
			want := cost(theirs, func() error { _, _, err := ws.Read(context.Background()); return err })
			require.LessOrEqual(t, got, want)
		})
	}
}
