package reconnect_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// A reader that comes back at once may be ahead of one that waits, but only four times:
// then the place is kept. So while one waits each of the others gets five messages at
// most.
func TestNoReaderStarves(t *testing.T) {
	const readers, messages = 4, 1000
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		peer := s.wantDial().accept()
		got := make(chan int, 1)
		for i := range readers {
			go func() { // ends with c
				for range c.Messages(context.Background()) {
					select {
					case got <- i:
					case <-c.Done(): // that was the end
					}
				}
			}()
		}
		synctest.Wait() // one reads, and the others wait
		var last [readers]int
		for n := 1; n <= messages; n++ {
			deliver(peer, n, n)
			last[<-got] = n
			for i, at := range last {
				require.LessOrEqual(t, n-at, 5*(readers-1), "reader %d waits since message %d", i, at)
			}
		}
	})
}

// Promises 5 and 7, for goroutines that read at the same time and whose contexts end
// just then: no message is lost, doubled, or overtaken by a later one of its reader.
func TestReadersShareTheStream(t *testing.T) {
	const readers, sessions, messages = 5, 50, 200
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(3 * time.Millisecond))
		c := s.open(&o)
		shares := make([]share, readers)
		var all sync.WaitGroup
		for i := range shares {
			all.Go(func() { shares[i].read(c, time.Duration(i+1)*time.Millisecond) })
		}
		var want []int
		for n := range sessions * messages {
			want = append(want, n)
		}
		for n := range sessions {
			peer := s.wantDial().accept()
			deliver(peer, n*messages, (n+1)*messages-1)
			peer.Fail(errLost)
			synctest.Wait()
		}
		quit(c)
		all.Wait()
		var whole share
		for _, share := range shares {
			require.True(t, slices.IsSorted(share.messages))
			whole.add(share)
		}
		slices.Sort(whole.messages)
		require.Equal(t, want, whole.messages)
		require.Equal(t, sessions, whole.seams)
		require.NotZero(t, whole.cancelled)
	})
}

// One that reads once and does not come back leaves the rest to the others.
func TestTwoMessagesEndTheWaitOfTwoReaders(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c := s.open(nil)
		peer := s.wantDial().accept()
		got := make(chan string, 2)
		for range cap(got) {
			go func() {
				m, _ := c.Read(t.Context(), nil)
				got <- string(m.Data)
			}()
		}
		synctest.Wait()
		peer.Deliver(text("1"), text("2"))
		synctest.Wait()
		require.Len(t, got, 2)
		require.ElementsMatch(t, []string{"1", "2"}, []string{<-got, <-got})
	})
}

// share is what one of several readers got.
type share struct {
	messages         []int
	seams, cancelled int
}

// read reads until c ends, for no longer than limit at a time. The Read after each
// message is cancelled while it runs.
func (s *share) read(c *reconnect.Conn, limit time.Duration) {
	for again := false; ; {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		if again {
			go cancel()
		}
		m, err := c.Read(ctx, nil)
		cancel()
		_, seam := errors.AsType[*reconnect.Seam](err)
		switch again = err == nil; {
		case err == nil:
			n, _ := strconv.Atoi(string(m.Data))
			s.messages = append(s.messages, n)
		case seam:
			s.seams++
		case errors.Is(err, net.ErrClosed):
			return
		default:
			s.cancelled++
		}
	}
}

func (s *share) add(more share) {
	s.messages = append(s.messages, more.messages...)
	s.seams += more.seams
	s.cancelled += more.cancelled
}

// BenchmarkFairness reports how long a Write takes, now and then, while four other
// goroutines write in a loop; beside it the same with a mutex around a conn.Framed.
// The figures that count are the ratios within one run.
func BenchmarkFairness(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	go func() { // ends with l
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, nc) // ends with its connection
		}
	}()
	dial := func(context.Context) (conn.Conn, error) {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return nil, err
		}
		return conn.NewFramed(nc, conn.LengthPrefix{}, nil)
	}
	plain, err := dial(b.Context())
	require.NoError(b, err)
	defer plain.CloseNow()
	open := func(o *reconnect.Options) func(context.Context, conn.Message) error {
		c, err := reconnect.New(reconnect.DialFunc(dial), o)
		require.NoError(b, err)
		b.Cleanup(func() { quit(c) })
		require.NoError(b, c.Await(b.Context(), reconnect.StateReady))
		return c.Write
	}
	var mu sync.Mutex
	for name, write := range map[string]func(context.Context, conn.Message) error{
		"mutex": func(_ context.Context, m conn.Message) error {
			mu.Lock()
			defer mu.Unlock()
			return plain.Write(m)
		},
		"redial":      open(nil),
		"redial-done": open(&reconnect.Options{Outbox: reconnect.Outbox{OnReceipt: func(context.Context, reconnect.Receipt) {}}}),
	} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var g sync.WaitGroup
			data := text(strings.Repeat("x", 1000))
			for range 4 {
				g.Go(func() {
					for ctx.Err() == nil {
						if err := write(context.Background(), data); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			var took []time.Duration
			for range b.N {
				start := time.Now()
				require.NoError(b, write(b.Context(), text("tick")))
				took = append(took, time.Since(start))
				time.Sleep(time.Millisecond)
			}
			cancel()
			g.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}
