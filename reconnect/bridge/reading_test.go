package bridge_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/bridge"
)

// lateSource is a source whose Read sees that its context has ended, and returns what it has then.
type lateSource struct {
	*scriptedSource
	end chan error // what Read returns instead of the error of its context
}

func (l *lateSource) Read(ctx context.Context, buf []byte) (reconnect.Message, error) {
	m, err := l.scriptedSource.Read(ctx, buf)
	if ctx.Err() != nil {
		select {
		case end := <-l.end:
			return reconnect.Message{}, end
		default:
			return m, fmt.Errorf("read: %w", ctx.Err())
		}
	}
	return m, err
}

// readLate has one message read, which has a fetch of the past begin. The context of Read ends when
// the fetch has returned after a second, and Read returns end, once.
func readLate(t *testing.T, ctx context.Context, end error) (got []string, err error) {
	past := func(context.Context, bridge.Request[string]) ([]item, error) {
		time.Sleep(time.Second)
		return nil, io.EOF
	}
	b, err := bridge.New(&options{Parse: parseItem, Past: past})
	require.NoError(t, err)
	source := &lateSource{&scriptedSource{session: 1, state: reconnect.StateReady, next: make(chan any)}, make(chan error, 1)}
	source.end <- end
	require.NoError(t, b.Follow("a", bridge.Cursor{Offset: 5}))
	for e, end := range b.Events(ctx, source) {
		if err = end; err == nil {
			got = append(got, eventWords(e))
		}
	}
	return got, err
}

// A source says once that it has ended, in the moment in which a fetch ends.
func TestTheEndOfASourceIsToldThoughAFetchEndsInTheSameMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		got, err := readLate(t, ctx, errClosed)
		require.Equal(t, errClosed, err)
		require.Equal(t, []string{"a: stale 6-"}, got)
	})
}

// The same in the moment in which the reader's own context ends.
func TestTheEndOfASourceIsToldThoughTheContextEndsInTheSameMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second/2)
		defer stop()
		_, err := readLate(t, ctx, errClosed)
		require.Equal(t, errClosed, err)
	})
}

// The error of a context ends the loop only if the context is the reader's.
func TestTheEndOfAReadIsNotTheEndOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Hour, errLost)
		defer stop()
		start := time.Now()
		got, err := readLate(t, ctx, fmt.Errorf("read: %w", context.Canceled))
		require.Equal(t, errLost, err)
		require.Equal(t, time.Hour, time.Since(start))
		require.Equal(t, []string{"a: stale 6-", "a: healed 5"}, got)
	})
}

func TestBreakCancelsFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var canceled error
		past := func(ctx context.Context, _ bridge.Request[string]) ([]item, error) {
			<-ctx.Done()
			canceled = context.Cause(ctx)
			return nil, canceled
		}
		b, err := bridge.New(&options{Parse: parseItem, Past: past})
		require.NoError(t, err)
		source := &scriptedSource{state: reconnect.StateReady, next: make(chan any)}
		require.NoError(t, b.Follow("a", bridge.Cursor{Offset: 5}))
		time.AfterFunc(time.Second, func() {
			source.next <- reconnect.Message{Message: conn.TextMessage("welcome")}
		})
		for e, err := range b.Events(t.Context(), source) {
			require.NoError(t, err)
			if e.Kind == bridge.EventOther {
				break
			}
		}
		require.Equal(t, context.Canceled, canceled)
	})
}
