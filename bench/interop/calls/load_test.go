package calls_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// load asks a server many questions at a time while it is killed and started again.
type load struct {
	t      *testing.T
	server *program
	stats  func() call.Stats
	ask    func(ctx context.Context, again bool, text string, after int) (string, error)

	mu       sync.Mutex // guards what follows
	answered map[string]bool
	lost     map[string]error // by question, those that may be asked once
}

// run kills the server some times, each time with a question under way. Every question has one
// end, with its own answer or a fate that is true, and those that may go again are all answered.
func (l *load) run(ctx context.Context, kills int) {
	l.answered, l.lost = map[string]bool{}, map[string]error{}
	var workers sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); workers.Wait() })
	defer end() // if the test fails
	for w := range 16 {
		workers.Go(func() { l.work(ctx, w, stop) })
	}
	for i := range kills {
		l.await(ctx, (i+1)*100)
		slow := make(chan error, 1)
		go func() { slow <- l.one(ctx, false, fmt.Sprintf("slow %d", i), 3_600_000) }()
		for l.server.asked()[fmt.Sprintf("slow %d", i)] == 0 {
			require.NoError(l.t, ctx.Err(), "the slow question does not arrive")
			time.Sleep(time.Millisecond)
		}
		l.server.kill()
		lost, ok := errors.AsType[*call.LostError](<-slow)
		require.True(l.t, ok)
		require.Equal(l.t, reconnect.FateUnknown, lost.Fate)
		l.server.restart(ctx)
	}
	l.await(ctx, (kills+1)*100)
	end()
	l.check(kills)
}

// await waits until so many questions were answered.
func (l *load) await(ctx context.Context, n int) {
	for {
		l.mu.Lock()
		got := len(l.answered)
		l.mu.Unlock()
		if got >= n {
			return
		}
		require.NoError(l.t, ctx.Err(), "%d answers of %d", got, n)
		time.Sleep(time.Millisecond)
	}
}

// work asks one question after the other. Every other one may go again.
func (l *load) work(ctx context.Context, w int, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
			_ = l.one(ctx, i%2 == 0, fmt.Sprintf("%d of %d", i, w), rand.IntN(20))
		}
	}
}

// one asks one question, and notes how it ends.
func (l *load) one(ctx context.Context, again bool, text string, after int) error {
	answer, err := l.ask(ctx, again, text, after)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, lost := errors.AsType[*call.LostError](err); {
	case err == nil:
		if answer != text {
			l.t.Errorf("%q got %q", text, answer)
		}
		l.answered[text] = true
	case !lost || again:
		l.t.Errorf("%q: %v", text, err)
	default:
		l.lost[text] = err
	}
	return err
}

// check compares with what the server has noted.
func (l *load) check(kills int) {
	asked := l.server.asked()
	for text := range l.answered {
		require.NotZero(l.t, asked[text], text)
	}
	for text, err := range l.lost {
		if call.Unsent(err) {
			require.Zero(l.t, asked[text], "%q: %v", text, err)
		}
		require.LessOrEqual(l.t, asked[text], 1, text)
	}
	s := l.stats()
	require.Zero(l.t, s.InFlight)
	require.GreaterOrEqual(l.t, s.Lost, uint64(kills))
	require.Equal(l.t, s.Asked, s.Answered+s.Lost)
	require.Equal(l.t, len(l.answered), int(s.Answered))
	l.t.Logf("%+v", s)
}

// text returns the string in a JSON value.
func text(value json.RawMessage, err error) (s string, _ error) {
	if err == nil {
		err = json.Unmarshal(value, &s)
	}
	return s, err
}
