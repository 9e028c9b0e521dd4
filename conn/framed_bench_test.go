//go:build unix

package conn

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dialLines returns a connection on which lines of that size come without end.
func dialLines(b *testing.B, url string, size int) net.Conn {
	nc, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(b, err)
	b.Cleanup(func() { nc.Close() })
	_, err = fmt.Fprintf(nc, "GET /lines/%d HTTP/1.1\r\nHost: x\r\n\r\n", size)
	require.NoError(b, err)
	return nc
}

// The other side is a loop by hand: a bufio.Scanner over the connection, and a
// copy of each line into a buffer of one's own.
func benchmarkLines(b *testing.B, size int) {
	url := startPusher(b)
	ours, err := NewFramed(dialLines(b, url, size), Lines{}, nil)
	require.NoError(b, err)
	defer ours.CloseNow()
	scanner := bufio.NewScanner(dialLines(b, url, size))
	buf, buf2 := make([]byte, 8<<10), make([]byte, 8<<10)
	compare(b, func() error {
		_, err := ours.Read(buf)
		return err
	}, func() error {
		if !scanner.Scan() {
			return scanner.Err()
		}
		buf2 = append(buf2[:0], scanner.Bytes()...)
		return nil
	})
}

func BenchmarkReadLines128(b *testing.B)  { benchmarkLines(b, 128) }
func BenchmarkReadLines4096(b *testing.B) { benchmarkLines(b, 4096) }

func BenchmarkWriteLines(b *testing.B) {
	client, _ := pipe()
	nc := &sink{*client}
	ours, err := NewFramed(nc, Lines{}, nil)
	require.NoError(b, err)
	defer ours.CloseNow()
	data, line := make([]byte, 128), make([]byte, 0, 200)
	compare(b, func() error {
		return ours.Write(Message{Data: data})
	}, func() error {
		line = append(append(line[:0], data...), '\n')
		_, err := nc.Write(line)
		return err
	})
}

// idle returns the live heap for each of 2,000 connections that wrap makes of
// one in memory.
func idle(b *testing.B, wrap func(net.Conn) any) float64 {
	const count = 2000
	var before, after runtime.MemStats
	kept, ends := make([]any, count), make([]net.Conn, count)
	for i := range ends {
		ends[i], _ = pipe()
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range kept {
		kept[i] = wrap(ends[i])
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(ends)
	return float64(after.HeapAlloc-before.HeapAlloc) / count
}

// What an idle connection holds beside its net.Conn and the reader's stack.
func BenchmarkIdleMemory(b *testing.B) {
	ours := idle(b, func(nc net.Conn) any { c, _ := NewFramed(nc, Lines{}, nil); return c })
	hands := idle(b, func(nc net.Conn) any { return bufio.NewReader(nc) })
	for b.Loop() {
	}
	b.ReportMetric(ours, "B/conn")
	b.ReportMetric(hands, "hand-B/conn")
	b.ReportMetric(ours/hands, "ratio")
}
