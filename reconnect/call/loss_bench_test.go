package call_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// sink is a connection whose peer answers nothing.
type sink struct {
	left   int           // how many messages are to come until all is closed; the writer owns it
	all    chan struct{} // closed by Write
	closed chan struct{} // closed by CloseNow
	once   sync.Once
}

func newSink(n int) *sink {
	return &sink{left: n, all: make(chan struct{}), closed: make(chan struct{})}
}

func (s *sink) Read([]byte) (conn.Message, error) {
	<-s.closed
	return conn.Message{}, errors.New("lost")
}

func (s *sink) Write(conn.Message) error {
	if s.left--; s.left == 0 {
		close(s.all)
	}
	return nil
}

func (s *sink) Close(context.Context, int, string) error { return s.CloseNow() }

func (s *sink) CloseNow() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// repeatAll returns how long it takes from a loss until n Repeatable questions went again. The garbage of the
// questions is collected before the loss, because a collection visits the stacks of all goroutines, and it
// is a matter of chance whether one runs.
func repeatAll(b *testing.B, n int) time.Duration {
	client, err := call.New(&call.Options[int]{InFlight: n, ID: func(reconnect.Message) (int, bool) { return 0, false }})
	require.NoError(b, err)
	first, second := newSink(n), newSink(n)
	dials := make(chan *sink, 2) // has room for both
	dials <- first
	dials <- second
	c, err := reconnect.New(reconnect.DialFunc(func(context.Context) (conn.Conn, error) { return <-dials, nil }),
		&reconnect.Options{Layers: []*reconnect.Layer{client.Layer()}, Run: reconnect.RunOptions{Policy: every(time.Millisecond)}})
	require.NoError(b, err)
	var questions sync.WaitGroup
	for i := range n {
		questions.Go(func() {
			_, _ = client.Do(b.Context(), call.Request[int]{ID: i, Message: conn.TextMessage(strconv.Itoa(i)), Repeatable: true})
		})
	}
	<-first.all
	runtime.GC()
	began := time.Now()
	first.CloseNow()
	<-second.all
	took := time.Since(began)
	c.Close()
	<-c.Done()
	questions.Wait()
	return took
}

// Ten times the questions take ten times as long, and not a hundred times. Ten losses of 10,000 questions last
// as long as one of 100,000, so that other programs disturb both alike, and the shortest of three counts.
// Run it with -benchtime 1x.
func BenchmarkAllGoAgainAfterALoss(b *testing.B) {
	ten, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		for range 3 {
			var sum time.Duration
			for range 10 {
				sum += repeatAll(b, 10_000)
			}
			ten, many = min(ten, sum), min(many, repeatAll(b, 100_000))
		}
	}
	b.ReportMetric(ten.Seconds()*1000/10, "ms/10,000")
	b.ReportMetric(many.Seconds()*1000, "ms/100,000")
	b.ReportMetric(10*float64(many)/float64(ten), "times")
}
