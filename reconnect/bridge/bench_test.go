package bridge_test

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/bridge"
)

// BenchmarkStreams measures what a seam costs a Bridge with many streams: the time until none of them is
// stale. "times" is how much longer 100,000 streams take than 10,000. Of each the fastest run counts, because
// a machine that does something else, too, disturbs long runs more often.
func BenchmarkStreams(b *testing.B) {
	for _, way := range []string{"fetched", "failing", "live", "forgotten"} {
		b.Run(way, func(b *testing.B) {
			few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				few = min(few, runStreams(b, way, 10_000))
				many = min(many, runStreams(b, way, 100_000))
			}
			b.ReportMetric(float64(many)/float64(few), "times")
			b.ReportMetric(many.Seconds(), "s/100000")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// runStreams returns the time from the seam until no stream is stale. way says how that comes:
//
//   - fetched: the first fetch of each stream brings it up to date
//   - failing: the first fetch of each stream fails, and the second one follows when most others have failed
//   - live: while the fetches hang, each stream gets its next number
//   - forgotten: while the fetches hang, each stream is forgotten, the newest first
func runStreams(b *testing.B, way string, streams int) (took time.Duration) {
	var failed sync.Map
	past := func(ctx context.Context, r bridge.Request[int]) ([]bridge.Item[int, int], error) {
		if way == "live" || way == "forgotten" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if _, again := failed.LoadOrStore(r.Key, true); way == "failing" && !again {
			return nil, errFetch
		}
		return nil, io.EOF
	}
	policy := &backoff.Exponential{Base: time.Duration(streams) * 10 * time.Microsecond, Factor: 1, Jitter: backoff.JitterNone}
	br, err := bridge.New(&bridge.Options[int, int]{Parse: parseNumbers, Past: past, Streams: streams, Timeout: time.Hour, Policy: policy})
	require.NoError(b, err)
	source := &manyStreams{streams: streams, live: way == "live"}
	left := streams
	for e, err := range br.Events(b.Context(), source) {
		switch {
		case err != nil:
			b.Fatal(err)
		case e.Kind == bridge.EventHealed:
			left--
		case e.Kind == bridge.EventOther && way == "forgotten":
			for ; left > 0; left-- {
				br.Forget(left - 1)
			}
		}
		if left == 0 {
			took = time.Since(source.lost)
			break
		}
	}
	return took
}

// manyStreams is a Source with a message of each stream, a seam, and, if live is set, another message of
// each stream, the newest first.
type manyStreams struct {
	streams int
	live    bool
	read    int
	lost    time.Time
}

func (s *manyStreams) Read(ctx context.Context, _ []byte) (reconnect.Message, error) {
	n := s.read
	s.read++
	switch {
	case n < s.streams:
		return numbered(n, 1, 1), nil
	case n == s.streams:
		runtime.GC()
		s.lost = time.Now()
		return reconnect.Message{}, &reconnect.Seam{Session: 1, Lost: 1, Cause: errLost}
	case s.live && n <= 2*s.streams:
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
