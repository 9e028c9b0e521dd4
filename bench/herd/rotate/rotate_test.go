package rotate

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redial-go/redial/bench/herd/lab"
	"github.com/redial-go/redial/bench/internal/child"
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestMain(m *testing.M) {
	if child.Is(serverArgument) {
		os.Exit(child.Main(serverArgument, setup.serve))
	}
	goleak.VerifyTestMain(m)
}

// way is how a session ends in the middle of a run.
type way struct {
	name    string
	rotates bool
	overlap reconnect.Overlap
	life    time.Duration // the server ends the session; 0: it does not
	wait    time.Duration // before the redial; zero means the default policy
}

var ways = []way{
	{name: "undisturbed"},
	{name: "hold", rotates: true, overlap: reconnect.OverlapHold},
	{name: "mix", rotates: true, overlap: reconnect.OverlapMix},
	{name: "break first", rotates: true, overlap: reconnect.OverlapBreakFirst},
	{name: "no rotation", life: before},
}

const (
	before = 500 * time.Millisecond  // from the first message to the rotation
	after  = 2500 * time.Millisecond // from then on until the end of the run, and of a wait before a redial
	drain  = 500 * time.Millisecond  // of the old session
)

// reader counts messages.
type reader struct {
	mu     sync.Mutex // guards what follows
	seen   map[uint64]bool
	lowest uint64
	most   uint64
	twice  int // messages whose number had come before
	last   time.Time
	pause  time.Duration // the longest between two messages
	lost   bool          // the old session was lost before the next one was ready
}

func (r *reader) take(_ context.Context, m reconnect.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, now := binary.BigEndian.Uint64(m.Data), time.Now()
	if len(r.seen) == 0 {
		r.lowest = n
	} else {
		r.pause = max(r.pause, now.Sub(r.last))
	}
	if r.seen[n] {
		r.twice++
	}
	r.seen[n] = true
	r.most, r.last = max(r.most, n), now
}

// missing is how many numbers between the first and the last never came.
func (r *reader) missing() int { return int(r.most-r.lowest+1) - len(r.seen) }

// open returns a Conn that says hello and waits for the answer.
func open(t testing.TB, url string, o *reconnect.Options) *reconnect.Conn {
	o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
		if err := o.Write(conn.Message{Type: conn.Binary, Data: hello}); err != nil {
			return err
		}
		_, err := o.Read()
		return err
	}
	c, err := reconnect.New(&dialer.WebSocket{URL: url}, o)
	require.NoError(t, err)
	return c
}

// read is one run: a client that reads, and whose session ends as w says.
func (w way) read(t testing.TB, moves bool, rate int) *reader {
	r := &reader{seen: map[uint64]bool{}}
	o := &reconnect.Options{OnMessage: r.take, Rotate: reconnect.Rotation{Overlap: w.overlap, Drain: drain}}
	if w.wait > 0 {
		o.Run.Policy = &backoff.Exponential{Base: w.wait, Factor: 1, Jitter: backoff.JitterNone}
	}
	c := open(t, setup{Moves: moves, Rate: rate, Life: w.life}.start(t), o)
	require.NoError(t, c.AwaitReady(t.Context()))
	time.Sleep(before)
	if w.rotates {
		c.Rotate(c.Status().Session, reconnect.Advice{})
	}
	time.Sleep(after)
	r.mu.Lock()
	r.pause = max(r.pause, time.Since(r.last))
	r.mu.Unlock()
	s := c.Stats()
	c.Close()
	<-c.Done()
	require.False(t, w.rotates && s.Rotations+s.RotationsFailed == 0, "the session was not replaced")
	r.lost = s.RotationsFailed > 0
	return r
}

// The times depend on the machine, and what is lost or comes twice on the way.
func TestWhatTheReaderHearsDependsOnTheWay(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			w.wait = 300 * time.Millisecond // during which the server sends, and which is over before the end
			r := w.read(t, false, 200)
			require.Positive(t, r.pause)
			switch w.name {
			case "undisturbed":
				require.Zero(t, r.missing()+r.twice)
			case "hold", "mix":
				require.Zero(t, r.missing(), "the server gives everything to both")
				require.Positive(t, r.twice)
			case "no rotation":
				require.Positive(t, r.missing())
			}
			require.False(t, r.lost)
		})
	}
	t.Run("moves", func(t *testing.T) {
		t.Parallel()
		r := ways[1].read(t, true, 200)
		require.Zero(t, r.missing()+r.twice)
	})
}

func BenchmarkPause(b *testing.B) {
	for _, moves := range []bool{false, true} {
		for _, w := range ways {
			b.Run(fmt.Sprintf("%s,moves=%t", w.name, moves), func(b *testing.B) {
				var pause, missing, twice []float64
				for b.Loop() {
					r := w.read(b, moves, 1000)
					pause = append(pause, r.pause.Seconds()*1000)
					missing, twice = append(missing, float64(r.missing())), append(twice, float64(r.twice))
				}
				b.ReportMetric(lab.Median(pause), "ms/pause")
				b.ReportMetric(lab.Median(missing), "missing")
				b.ReportMetric(lab.Median(twice), "twice")
			})
		}
	}
}

// holding is what a process holds.
type holding struct {
	heap, stacks, goroutines int // the first two in bytes
}

// held returns, after a pause, what is alive.
func held() holding {
	time.Sleep(time.Second)
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return holding{int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()}
}

// since returns what h holds more than base, for each of n. The goroutines are rounded: one of the
// runtime's, or of the server's process, may have come or gone.
func (h holding) since(base holding, n int) holding {
	return holding{(h.heap - base.heap) / n, (h.stacks - base.stacks) / n, (h.goroutines - base.goroutines + n/2) / n}
}

// memory returns what n connections hold, each: with one session, while two overlap, and with one
// again. As many are opened and closed before, because the runtime keeps some of what the first
// goroutines have needed.
func memory(t testing.TB, n int, overlap time.Duration) (one, two, again holding) {
	url := setup{}.start(t)
	all := make([]*reconnect.Conn, n)
	openAll := func() {
		for i := range all {
			all[i] = open(t, url, &reconnect.Options{
				OnMessage: func(context.Context, reconnect.Message) {}, Rotate: reconnect.Rotation{Drain: overlap},
			})
			require.NoError(t, all[i].AwaitReady(t.Context()))
		}
	}
	closeAll := func() {
		for _, c := range all {
			c.Close()
		}
		for _, c := range all {
			<-c.Done()
		}
		clear(all)
	}
	await := func(wanted func(reconnect.Status) bool) {
		for _, c := range all {
			require.Eventually(t, func() bool { return wanted(c.Status()) }, time.Minute, 10*time.Millisecond)
		}
	}
	openAll()
	closeAll()
	base := held()
	openAll()
	defer closeAll()
	one = held().since(base, n)
	for _, c := range all {
		c.Rotate(c.Status().Session, reconnect.Advice{})
	}
	await(func(s reconnect.Status) bool { return s.Session > 1 && s.Rotating })
	two = held().since(base, n)
	for _, c := range all {
		require.True(t, c.Status().Rotating, "the overlap was over before")
	}
	await(func(s reconnect.Status) bool { return !s.Rotating })
	again = held().since(base, n)
	return one, two, again
}

// Stacks are not compared: the runtime takes them in spans of 32 KB, and keeps a span until the last
// goroutine in it has ended.
func TestTwoSessionsHoldMoreThanOne(t *testing.T) {
	one, two, again := memory(t, 50, 10*time.Second)
	require.Equal(t, 1, one.goroutines)
	require.Equal(t, 2, two.goroutines)
	require.Equal(t, 1, again.goroutines)
	require.Positive(t, one.heap)
	require.Greater(t, two.heap, one.heap+one.heap/2)
	require.Less(t, again.heap, two.heap)
}

func BenchmarkMemory(b *testing.B) {
	var one, two, again holding
	for b.Loop() {
		one, two, again = memory(b, 1000, 20*time.Second)
	}
	b.ReportMetric(float64(one.heap+one.stacks), "B/one")
	b.ReportMetric(float64(two.heap+two.stacks), "B/two")
	b.ReportMetric(float64(again.heap+again.stacks), "B/one-again")
}

// layers reads so many messages by a Conn that has so many layers, which do not take them. The
// connection below costs next to nothing, so that the layers show.
func layers(t testing.TB, layers, messages int) {
	o := &reconnect.Options{Liveness: reconnect.Liveness{Limit: -1}}
	kept, n, done := 0, 0, make(chan struct{})
	for range layers {
		o.Layers = append(o.Layers, &reconnect.Layer{Receive: func(m reconnect.Message) bool {
			kept += len(m.Data)
			return false
		}})
	}
	o.OnMessage = func(context.Context, reconnect.Message) {
		if n++; n == messages {
			close(done)
		}
	}
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) {
		return &stock{left: messages, closed: make(chan struct{})}, nil
	}), o)
	require.NoError(t, err)
	<-done
	c.Close()
	<-c.Done()
	require.Equal(t, layers*messages*messageBytes, kept)
}

func TestLayersSeeEachMessage(t *testing.T) {
	for _, n := range []int{0, 3} {
		layers(t, n, 1000)
	}
}

func BenchmarkLayers(b *testing.B) {
	for _, n := range []int{0, 1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { layers(b, n, b.N) })
	}
}

// stock is a connection that has so many messages at once, and then none.
type stock struct {
	left   int
	data   [messageBytes]byte
	closed chan struct{}
	once   sync.Once
}

var _ conn.Transport = (*stock)(nil)

func (s *stock) Read(buf []byte) (conn.Message, error) {
	return s.ReadBuffer(func(int) []byte { return buf })
}

// ReadBuffer copies, as every connection does.
func (s *stock) ReadBuffer(buffer func(size int) []byte) (conn.Message, error) {
	if s.left == 0 {
		<-s.closed
		return conn.Message{}, net.ErrClosed
	}
	s.left--
	return conn.Message{Type: conn.Binary, Data: append(buffer(messageBytes)[:0], s.data[:]...)}, nil
}

func (s *stock) Write(conn.Message) error { return nil }

func (s *stock) WriteBatch(ms []conn.Message) (int, error) { return len(ms), nil }

func (s *stock) BeforeBlock(func()) bool { return false }

func (s *stock) Silence() time.Duration { return 0 }

func (s *stock) HungUp() bool { return false }

func (s *stock) LocalAddr() net.Addr { return nil }

func (s *stock) Close(context.Context, int, string) error { return s.CloseNow() }

func (s *stock) CloseNow() error { s.once.Do(func() { close(s.closed) }); return nil }
