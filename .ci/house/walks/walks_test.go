package reconnect_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/budget"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
	"github.com/redial-go/redial/walktrace"
)

// TestWalks plays the scenes that command house counts, and prints a line for each.
func TestWalks(t *testing.T) {
	begin := func(play func(t *testing.T, s *scene.Scene)) {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			s.Fake = conntest.FakeOptions{Pings: true, Transport: true}
			play(t, s)
		})
	}
	plain := func() *reconnect.Options {
		o := scene.WithPolicy(scene.Every(time.Second))
		return &o
	}

	o := plain()
	o.OnMessage = func(context.Context, reconnect.Message) {}
	begin(func(t *testing.T, s *scene.Scene) {
		s.Open(o)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 3)
		walk("a message by push", func() { scene.Deliver(peer, 4, 4) })
	})

	o = plain()
	begin(func(t *testing.T, s *scene.Scene) {
		c := s.Open(o)
		peer := s.WantDial().Accept()
		n := 0
		go func() { // ends with the Conn
			for range c.Messages(context.Background()) {
				n++
			}
		}()
		scene.Deliver(peer, 0, 19)
		walk("a message by Messages", func() { scene.Deliver(peer, 20, 20) })
		require.Equal(t, 21, n)
		scene.CloseAndWait(c)
	})

	o = plain()
	o.Outbox.OnReceipt = func(context.Context, reconnect.Receipt) {}
	begin(func(t *testing.T, s *scene.Scene) {
		c := s.Open(o)
		s.WantDial().Accept()
		write := func() { require.NoError(t, c.Write(t.Context(), scene.Text("x"))) }
		write()
		walk("a Write", write)
		send := func() { require.NoError(t, c.Send(reconnect.Outgoing{Message: scene.Text("x")})) }
		send()
		walk("a Send", send)
	})

	o = plain()
	begin(func(t *testing.T, s *scene.Scene) {
		c := s.Open(o)
		peer := s.WantDial().Accept()
		scene.Deliver(peer, 1, 1)
		scene.WantMessage(t, c, 1, "1")
		walk("the end of a session", func() { peer.Fail(scene.ErrLost) })
		require.Equal(t, reconnect.StateWaiting, c.State())
		walk("a redial", func() {
			time.Sleep(time.Second)
			s.WantDial().Accept()
		})
		require.Equal(t, reconnect.StateReady, c.State())
	})

	rotates := scene.Rotating(reconnect.OverlapHold)
	begin(func(t *testing.T, s *scene.Scene) {
		c := s.Open(&rotates)
		old := s.WantDial().Accept()
		scene.Deliver(old, 1, 1)
		scene.WantMessage(t, c, 1, "1")
		walk("a rotation", func() {
			c.Rotate(1, reconnect.Advice{})
			next := s.WantDial().Accept()
			scene.Deliver(next, 10, 10)
			scene.Deliver(old, 3, 3)
			time.Sleep(7 * time.Second)
		})
		require.Equal(t, uint64(1), c.Stats().Rotations)
		require.False(t, c.Status().Rotating)
	})

	o = plain()
	begin(func(t *testing.T, s *scene.Scene) {
		var err error
		o.Run.Gate, err = budget.NewGate(nil)
		require.NoError(t, err)
		o.Run.Host = "h"
		walk("the first dial through a gate", func() {
			s.Open(o)
			s.WantDial().Accept()
		})
	})
}

// walk prints how many calls play leads to, and of how many functions in how many files. If the environment names
// a directory in WALKS, the walk itself becomes a file there.
func walk(name string, play func()) {
	synctest.Wait()
	walktrace.Start()
	play()
	synctest.Wait()
	files, functions, calls := map[string]bool{}, map[string]bool{}, 0
	depth := map[int]int{}
	var lines []string
	for _, c := range walktrace.Stop() {
		if c.Name == "" {
			depth[c.Goroutine] = max(depth[c.Goroutine]-1, 0) // it may have been called before
			continue
		}
		file, _, _ := strings.Cut(c.Name, " ")
		files[file], functions[c.Name] = true, true
		calls++
		lines = append(lines, fmt.Sprintf("%-4d%s%s", c.Goroutine, strings.Repeat("  ", depth[c.Goroutine]), c.Name))
		depth[c.Goroutine]++
	}
	fmt.Printf("walk\t%s\t%d\t%d\t%d\n", name, calls, len(functions), len(files))
	if dir := os.Getenv("WALKS"); dir != "" {
		report := append(slices.Sorted(maps.Keys(files)), "")
		report = append(report, lines...)
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".txt")
		if err := os.WriteFile(file, []byte(strings.Join(report, "\n")+"\n"), 0o644); err != nil {
			panic(err)
		}
	}
}
