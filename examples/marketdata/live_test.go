//go:build !js

package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// watched is a follower of a feed in a bubble. The test plays the server. Each wait is
// 2.5 s.
type watched struct {
	*follower
	dials chan *conntest.Fake // the server's end of the next connection
	out   bytes.Buffer
	stop  context.CancelFunc
	ended chan error
}

// watch runs play with a follower, and returns what that printed.
func watch(t *testing.T, play func(*watched)) (out string) {
	synctest.Test(t, func(t *testing.T) {
		null, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer null.Close()
		w := &watched{follower: &follower{journal: newJournal(null, nil)}, dials: make(chan *conntest.Fake), ended: make(chan error, 1)}
		w.journal.printer.out, w.journal.printer.terminal = &w.out, false
		require.NoError(t, w.follow(reconnect.DialFunc(w.dial), &reconnect.Options{
			Run: reconnect.RunOptions{Policy: &backoff.Exponential{Base: 2500 * time.Millisecond, Factor: 1, Jitter: backoff.JitterNone}},
		}))
		ctx, stop := context.WithCancel(t.Context())
		w.stop = stop
		go func() { w.ended <- w.watch(ctx) }() // <-w.ended waits for it
		play(w)
		w.stop()
		require.NoError(t, <-w.ended)
		w.feed.Close()
		w.journal.close()
		out = w.out.String()
	})
	return out
}

func (w *watched) dial(ctx context.Context) (conn.Conn, error) {
	ours, theirs := conntest.Pair(nil)
	select {
	case w.dials <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// seconds returns the lines that are printed once a second, without their time.
func seconds(out string) (lines []string) {
	for _, found := range regexp.MustCompile(`(?m)^ +\d+\.000s  (\w+ +.* gaps?)$`).FindAllStringSubmatch(out, -1) {
		lines = append(lines, strings.Join(strings.Fields(found[1]), " "))
	}
	return lines
}

func TestEachSecondShowsHowMuchCameAndHowManyGaps(t *testing.T) {
	out := watch(t, func(w *watched) {
		time.Sleep(1200 * time.Millisecond) // before the server answers
		peer := <-w.dials
		time.Sleep(300 * time.Millisecond)
		for range 3 {
			require.NoError(t, peer.Write(conn.TextMessage("hello, world")))
		}
		time.Sleep(1200 * time.Millisecond)
		require.NoError(t, peer.Write(conn.TextMessage(strings.Repeat("x", 2000))))
		peer.CloseNow()
		peer = <-w.dials
		defer peer.CloseNow()
		time.Sleep(900 * time.Millisecond)
	})
	require.Equal(t, []string{
		"connecting no message yet, 0 gaps",
		"ready session 1: 3 msg (3/s), 36 B, last 0.5s ago, 0 gaps",
		"waiting next try in 2.2s; after session 1: 4 msg, 2.0 kB, last 0.3s ago, 1 gap",
		"waiting next try in 1.2s; after session 1: 4 msg, 2.0 kB, last 1.3s ago, 1 gap",
		"waiting next try in 0.2s; after session 1: 4 msg, 2.0 kB, last 2.3s ago, 1 gap",
		"ready session 2: 4 msg (0/s), 2.0 kB, last 3.3s ago, 1 gap",
	}, seconds(out))
	require.Contains(t, out, "ended       session 1, ready for 1.5s: ")
	require.Contains(t, out, "waiting     2.5s before attempt 2 (retry)\n")
}

func TestTheAgeOfTheLastMessageOfAHangingFeedGrows(t *testing.T) {
	out := watch(t, func(w *watched) {
		peer := <-w.dials
		defer peer.CloseNow()
		require.NoError(t, peer.Write(conn.TextMessage("hello")))
		time.Sleep(65500 * time.Millisecond)
	})
	lines := seconds(out)
	require.Len(t, lines, 65)
	require.Equal(t, "ready session 1: 1 msg (1/s), 5 B, last 1.0s ago, 0 gaps", lines[0])
	require.Equal(t, "ready session 1: 1 msg (0/s), 5 B, last 59.0s ago, 0 gaps", lines[58])
	require.Equal(t, "ready session 1: 1 msg (0/s), 5 B, last 1m5s ago, 0 gaps", lines[64])
}

func TestASizeHasAUnit(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1 << 63: "9223372.0 TB"} {
		require.Equal(t, want, size(n))
	}
}
