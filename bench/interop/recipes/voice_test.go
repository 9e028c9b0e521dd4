//go:build linux

package recipes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// No frame comes twice, and frames are missing only where a connection was lost: not where one was replaced.
func TestVoice(t *testing.T) {
	dir := t.TempDir()
	service := startPeer(t, "telephone", dir)
	p := pipe(t, "voice", "-url", "ws://"+service.Address)
	spoken, hangUp := make(chan int), make(chan struct{})
	go func() { // <-spoken waits for it
		n := 0
		for tick := time.NewTicker(20 * time.Millisecond); ; n++ {
			select {
			case <-hangUp:
				spoken <- n
				return
			case <-tick.C:
				fmt.Fprintf(p.in, "%0160d", n)
			}
		}
	}()
	rotations := func() int { return strings.Count(p.read(".notes"), "downtime=0s") }
	for kill := range 3 {
		before := rotations()
		eventually(t, "two rotations more", func() bool { return rotations() >= before+2 })
		if kill < 2 {
			service.Kill()
			if kill == 1 { // the service forgets the call
				require.NoError(t, os.WriteFile(filepath.Join(dir, "handle"), []byte("another"), 0o600))
			}
			service.Start()
		}
	}
	close(hangUp)
	said := <-spoken
	require.NoError(t, p.in.Close())
	p.wait() // the service has said goodbye

	losses := strings.Count(p.read(".notes"), "session ready") - rotations() - 1 // the first is no loss
	heard, sent := linesOf(t, filepath.Join(dir, "heard")), linesOf(t, filepath.Join(dir, "sent"))
	check(t, "to the caller", frames(t, p.read(".out")), len(sent), losses)
	check(t, "to the service", frames(t, strings.Join(heard, "")), said, losses+1) // what was said before the first connection is missing too
	resumed := linesOf(t, filepath.Join(dir, "setups"))
	require.Equal(t, 2, strings.Count(strings.Join(resumed, " "), "false"), "the first call, and the one after the service has forgotten it")
	t.Logf("%d rotations, %d losses", rotations(), losses)
}

// frames returns the numbers of the frames in a stream of sound.
func frames(t *testing.T, sound string) (list []int) {
	require.Zero(t, len(sound)%160)
	for i := 0; i < len(sound); i += 160 {
		n, err := strconv.Atoi(sound[i : i+160])
		require.NoError(t, err)
		list = append(list, n)
	}
	return list
}

// check checks which of the frames 0 to n-1 came.
func check(t *testing.T, way string, came []int, n, losses int) {
	count := make([]int, n)
	for _, i := range came {
		count[i]++
	}
	missing, doubled := 0, 0
	var gaps []int // where they begin
	for i, c := range count {
		if c == 0 {
			if missing++; i == 0 || count[i-1] > 0 {
				gaps = append(gaps, i)
			}
		}
		doubled += max(0, c-1)
	}
	t.Logf("%s: %d frames, %d missing in gaps that begin at %v, %d twice", way, n, missing, gaps, doubled)
	require.Zero(t, doubled)
	require.LessOrEqual(t, len(gaps), losses)
}
