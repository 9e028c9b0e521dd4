package call_test

import (
	"context"
	"errors"
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

// repeatAll returns how long it takes from a loss until n Repeatable questions went again.
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
	began := time.Now()
	first.CloseNow()
	<-second.all
	took := time.Since(began)
	c.Close()
	<-c.Done()
	questions.Wait()
	return took
}

// Ten times the questions take ten times as long, and not a hundred times. Run it with -benchtime 1x.
func BenchmarkAllGoAgainAfterALoss(b *testing.B) {
	var few, many time.Duration
	for b.Loop() {
		few += repeatAll(b, 10_000)
		many += repeatAll(b, 100_000)
	}
	b.ReportMetric(few.Seconds()*1000/float64(b.N), "ms/10,000")
	b.ReportMetric(many.Seconds()*1000/float64(b.N), "ms/100,000")
	b.ReportMetric(float64(many)/float64(few), "times")
}
