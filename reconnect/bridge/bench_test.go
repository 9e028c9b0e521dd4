package bridge_test

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// BenchmarkStreams measures what a seam costs a Bridge with many streams: the time until none of them is
// stale. "times" is how much longer one Bridge with 100,000 streams takes than one with 10,000. Of the latter
// there are ten, side by side: all have their seam before the first one heals. So both find the same in the
// processor's cache, and the garbage collector has the same work. Of each the fastest run counts.
func BenchmarkStreams(b *testing.B) {
	for _, way := range ways {
		b.Run(way, func(b *testing.B) {
			few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				few = min(few, runStreams(b, way, 10, 10_000))
				many = min(many, runStreams(b, way, 1, 100_000))
			}
			b.ReportMetric(10*float64(many)/float64(few), "times")
			b.ReportMetric(many.Seconds(), "s/100000")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// Whatever ends a gap looks at few streams, however many there are. This counts what the Bridge visits in
// its list and its queue, and not the time.
func TestTheWorkAfterASeamGrowsWithTheStreams(t *testing.T) {
	for _, way := range ways {
		few, many := newStreams(t, way, 1000), newStreams(t, way, 16_000)
		for _, s := range []*manyStreams{few, many} {
			s.prepare(t)
			s.seam(t)
			s.heal(t)
			require.Zero(t, s.Stats().Stale)
		}
		require.Less(t, many.Visits(), 16*2*few.Visits(), way) // as n log n, and not 16 * 16
		require.Less(t, many.Visits(), 60*16_000, way)
	}
}

// ways are how streams become up to date after a seam:
//
//   - fetched: the first fetch of each stream brings it up to date
//   - failing: the first fetch of each stream fails, and the second one follows when most others have failed
//   - live: while the fetches hang, each stream gets its next number, the newest first
//   - forgotten: each stream is forgotten, the newest first
var ways = []string{"fetched", "failing", "live", "forgotten"}

// runStreams returns the time from the seam until no stream is stale, of a number of Bridges.
func runStreams(tb testing.TB, way string, bridges, streams int) time.Duration {
	runs := make([]*manyStreams, bridges)
	for i := range runs {
		runs[i] = newStreams(tb, way, streams)
		runs[i].prepare(tb)
	}
	runtime.GC()
	start := time.Now()
	for _, s := range runs {
		s.seam(tb)
	}
	for _, s := range runs {
		s.heal(tb)
	}
	return time.Since(start)
}

// manyStreams is a Bridge and its Source, which has a message of each stream, a seam, and, if live is set,
// another message of each stream, the newest first.
type manyStreams struct {
	*bridge.Bridge[int, int]
	way     string
	streams int
	read    int
	failed  []atomic.Bool // by stream: its first fetch has failed
}

func newStreams(tb testing.TB, way string, streams int) *manyStreams {
	s := &manyStreams{way: way, streams: streams, failed: make([]atomic.Bool, streams)}
	policy := &backoff.Exponential{Base: time.Duration(streams) * 10 * time.Microsecond, Factor: 1, Jitter: backoff.JitterNone}
	var err error
	s.Bridge, err = bridge.New(&bridge.Options[int, int]{Parse: parseNumbers, Past: s.past, Streams: streams, Timeout: time.Hour, Policy: policy})
	require.NoError(tb, err)
	return s
}

func (s *manyStreams) past(ctx context.Context, r bridge.Request[int]) ([]bridge.Item[int, int], error) {
	if s.way == "live" || s.way == "forgotten" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.way == "failing" && !s.failed[r.Key].Swap(true) {
		return nil, errFetch
	}
	return nil, io.EOF
}

// prepare reads the first message of each stream.
func (s *manyStreams) prepare(tb testing.TB) { s.until(tb, bridge.EventLive) }

// seam reads the seam.
func (s *manyStreams) seam(tb testing.TB) { s.until(tb, bridge.EventStale) }

// heal goes on until no stream is stale.
func (s *manyStreams) heal(tb testing.TB) {
	if s.way != "forgotten" {
		s.until(tb, bridge.EventHealed)
		return
	}
	for left := s.streams; left > 0; left-- {
		s.Forget(left - 1)
	}
}

// until reads until there was an event of a kind for each stream.
func (s *manyStreams) until(tb testing.TB, kind bridge.Kind) {
	left := s.streams
	for e, err := range s.Events(tb.Context(), s) {
		if err != nil {
			tb.Fatal(err)
		}
		if e.Kind == kind {
			left--
		}
		if left == 0 {
			return
		}
	}
}

func (s *manyStreams) Read(ctx context.Context, _ []byte) (reconnect.Message, error) {
	n := s.read
	s.read++
	switch {
	case n < s.streams:
		return numbered(n, 1, 1), nil
	case n == s.streams:
		return reconnect.Message{}, &reconnect.Seam{Session: 1, Lost: 1, Cause: errLost}
	case s.way == "live" && n <= 2*s.streams:
		return numbered(2*s.streams-n, 2, 2), nil
	}
	<-ctx.Done()
	return reconnect.Message{}, context.Cause(ctx)
}

func (s *manyStreams) Await(context.Context, reconnect.State) error { return nil }

func (s *manyStreams) State() reconnect.State { return reconnect.StateReady }

func numbered(key int, last byte, session uint64) reconnect.Message {
	data := append(binary.BigEndian.AppendUint32(nil, uint32(key)), last)
	return reconnect.Message{Message: conn.BinaryMessage(data), Session: session}
}

func parseNumbers(m reconnect.Message) (bridge.Item[int, int], bool) {
	return bridge.Item[int, int]{Key: int(binary.BigEndian.Uint32(m.Data)), Last: uint64(m.Data[4])}, true
}
