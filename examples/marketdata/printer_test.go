//go:build !js

package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// show runs a printer for 600 ms, and returns what it has written.
func show(t *testing.T, terminal bool) string {
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		p := &printer{
			out: &out, terminal: terminal,
			lines: make(chan string, 64), stop: make(chan struct{}), stopped: make(chan struct{}),
		}
		p.lines <- "one"
		start := time.Now()
		p.start(func() string { return time.Since(start).String() })
		time.Sleep(300 * time.Millisecond)
		p.lines <- "two"
		time.Sleep(300 * time.Millisecond)
		p.lines <- "three"
		p.close()
	})
	return out.String()
}

func TestLinesStandAboveTheStatusOfATerminal(t *testing.T) {
	require.Regexp(t, `^`+
		`\r\x1b\[Kone\n0s`+
		`\r\x1b\[K250ms`+
		`\r\x1b\[Ktwo\n300ms`+
		`\r\x1b\[K500ms`+
		`(\r\x1b\[Kthree\n600ms\r\x1b\[K|\r\x1b\[Kthree\n)$`, // in the end the status is cleared
		show(t, true))
}

func TestThereIsNoStatusWithoutATerminal(t *testing.T) {
	require.Equal(t, "one\ntwo\nthree\n", show(t, false))
}

func TestARateIsComputedOverTheLastSecond(t *testing.T) {
	var r rate
	start := time.Now()
	at := func(d time.Duration, count uint64) float64 { return r.of(count, start.Add(d)) }
	require.Zero(t, at(0, 1000))
	require.InDelta(t, 400, at(250*time.Millisecond, 1100), 1e-9)
	require.InDelta(t, 100, at(time.Second, 1100), 1e-9)
	require.InDelta(t, 0, at(1250*time.Millisecond, 1100), 1e-9)
	require.InDelta(t, 10, at(11*time.Second, 1200), 1, "with an older sample if there is no other")
	require.LessOrEqual(t, len(r.samples), 3)
}
