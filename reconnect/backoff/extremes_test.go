package backoff_test

import (
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/policytest"
	"github.com/redial-go/redial/reconnect/backoff"
)

type option = policytest.Option

const forever = policytest.Forever

func TestNoNumberBreaksAPolicy(t *testing.T) {
	proportional := &backoff.Exponential{Jitter: backoff.JitterProportional}
	policytest.TestOptions(t, []option{
		{Policy: &backoff.Exponential{}, Name: "Base", Waits: 10, Zero: 30, One: 0, Minus: 0, Most: forever},
		{Policy: &backoff.Exponential{}, Name: "Factor", Waits: 10, Zero: 30, One: 1, Minus: 1, Most: 30},
		{Policy: &backoff.Exponential{}, Name: "Cap", Waits: 10, Zero: 30, One: 0, Minus: 512, Most: 512},
		{Policy: &backoff.Exponential{}, Name: "OverloadCap", Waits: 10, Overload: true,
			Zero: 30, One: 30, Minus: 30, Most: 512},
		{Policy: proportional, Name: "Spread", Waits: 10, Zero: 36, One: 60, Minus: 30, Most: 60},
	})
}

func TestNoNumberBreaksFirstAndLimit(t *testing.T) {
	lost := func(p backoff.Policy, n int) []float64 { return waits(p, n, backoff.ClassRetry, highest) }
	waiting := &backoff.Exponential{Jitter: backoff.JitterNone} // 1 s, 2 s, 4 s
	for spread, want := range (&option{Most: forever}).Extremes(reflect.Int64) {
		first := lost(backoff.First(spread.(time.Duration), waiting), 1)
		require.InDelta(t, want, first[0], 1e-3, "%v", spread)
	}
	for attempts, want := range (&option{Zero: 9, One: 1, Minus: 9, Most: 9}).Extremes(reflect.Int) {
		require.Len(t, lost(backoff.Limit(waiting, attempts.(int), 0), 9), int(want), "%v", attempts)
	}
	for elapsed, want := range (&option{Zero: 9, One: 0, Minus: 9, Most: 9}).Extremes(reflect.Int64) {
		require.Len(t, lost(backoff.Limit(waiting, 0, elapsed.(time.Duration)), 9), int(want), "%v", elapsed)
	}
}

// handshakeLimit returns the limit on the handshake after the third overload in a row, in an
// outage of ten minutes.
func handshakeLimit(p backoff.Timeout) float64 {
	inside := &seen{step: backoff.Step{Handshake: 7 * time.Second}}
	a := backoff.History{Overloads: 3, Elapsed: 10 * time.Minute}
	s, _ := backoff.WithTimeouts(inside, backoff.Timeout{}, p).Next(a, seeded())
	return s.Handshake.Seconds()
}

func TestNoNumberBreaksATimeout(t *testing.T) {
	for base, want := range (&option{Zero: 240, One: 0, Minus: 7, Most: forever}).Extremes(reflect.Int64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Base: base.(time.Duration)}), 1e-6, "Base %v", base)
	}
	for factor, want := range (&option{Zero: 240, One: 30, Minus: 30, Most: 300}).Extremes(reflect.Float64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Factor: factor.(float64)}), 1e-6, "Factor %v", factor)
	}
	for share, want := range (&option{Zero: 240, One: 300, Minus: 240, Most: 300}).Extremes(reflect.Float64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Share: share.(float64)}), 1e-6, "Share %v", share)
	}
	for limit, want := range (&option{Zero: 240, One: 0, Minus: 240, Most: 240}).Extremes(reflect.Int64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Cap: limit.(time.Duration)}), 1e-6, "Cap %v", limit)
	}
}

func TestNoNumberBreaksRetryAfter(t *testing.T) {
	for told, want := range (&option{One: 1e-9, Most: 3600}).Extremes(reflect.Int64) {
		got := backoff.Classify(backoff.RetryAfter(io.EOF, told.(time.Duration))).RetryAfter
		require.InDelta(t, want, got.Seconds(), 1e-12, "%v", told)
	}
}
