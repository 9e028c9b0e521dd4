package conn

import (
	"context"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

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
