package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

func message(text string) reconnect.Message {
	return reconnect.Message{Message: conn.TextMessage(text)}
}

// times returns when a drain in this way closes each of 100 connections, since SIGTERM, in order.
func times(t *testing.T, name string) (at []time.Duration) {
	w, err := findWay(name)
	require.NoError(t, err)
	d, err := w.make(&setup{Window: 10 * time.Second, Lead: time.Second})
	require.NoError(t, err)
	begun := time.Now()
	closed := make(chan time.Duration, 100)
	for range cap(closed) {
		var remove func()
		remove = d.add(func(code int, _ string) error {
			require.Equal(t, 1012, code)
			closed <- time.Since(begun)
			remove()
			return nil
		}, func(time.Time) {})
	}
	require.True(t, d.ready())
	require.NoError(t, d.drain(t.Context()))
	require.False(t, d.ready())
	for range cap(closed) {
		at = append(at, <-closed)
	}
	return at
}

func TestEachWayKeepsItsRule(t *testing.T) {
	const second = time.Second
	for name, check := range map[string]func(at []time.Duration){
		"cut": func(at []time.Duration) {
			require.Equal(t, []time.Duration{second, second}, []time.Duration{at[0], at[99]})
		},
		"batches": func(at []time.Duration) {
			for i, d := range at {
				require.Equal(t, second+time.Duration(i/20)*2*second, d)
			}
		},
		"nats": func(at []time.Duration) {
			require.Equal(t, second, at[0])
			for i := range 99 {
				require.GreaterOrEqual(t, at[i+1]-at[i], second/20)
				require.Less(t, at[i+1]-at[i], second/10)
			}
		},
		"drain": func(at []time.Duration) {
			require.Less(t, at[9], 4*second)
			require.Greater(t, at[90], 8*second)
			require.LessOrEqual(t, at[99], 11*second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(times(t, name)) })
		})
	}
}

func TestAPlainDrainRefusesAndWaitsForItsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlain(&setup{Lead: time.Second}, func(int, int) time.Duration { return 0 })
		release := make(chan struct{})
		h := p.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		ask := func() int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			return w.Code
		}
		go ask() // until release is closed
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, enough)
		defer cancel()
		require.ErrorIs(t, p.drain(ctx), enough)
		require.Equal(t, http.StatusServiceUnavailable, ask())
		close(release)
		synctest.Wait()
		require.NoError(t, p.drain(t.Context()))
	})
}
