package backoff_test

import (
	"io"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
)

const (
	forever  = float64(1<<62-1) / 1e9 // seconds: the longest wait
	cheap    = backoff.ClassRetry
	overload = backoff.ClassOverload
)

// means has what comes of a numeric option if it is 0 or not a number, 1 (a nanosecond if
// it is a duration), negative, and as large as can be. In meanings these are the seconds
// of the last of so many waits, after failures of a class, if all draws are as long as
// they can be.
type means struct {
	policy                       any // a pointer to it
	option                       string
	waits                        int
	class                        backoff.Class
	zero, one, negative, highest float64
}

var meanings = []means{
	{&backoff.Exponential{}, "Base", 10, cheap, 30, 0, 0, forever},
	{&backoff.Exponential{}, "Factor", 10, cheap, 30, 1, 1, 30},
	{&backoff.Exponential{}, "Cap", 10, cheap, 30, 0, 512, 512},
	{&backoff.Exponential{}, "OverloadCap", 10, overload, 30, 30, 30, 512},
	{&backoff.Exponential{Jitter: backoff.JitterProportional}, "Spread", 10, cheap, 36, 60, 30, 60},
	{&classic.Paced{}, "Spread", 1, cheap, 2, 0, 2.4, forever},
	{&classic.Paced{}, "Base", 2, cheap, 2.4, 1, 1, forever},
	{&classic.Paced{}, "Share", 9, cheap, 25.819, 30, 2.4, 30},
	{&classic.Paced{}, "Cap", 20, cheap, 30, 0, 2233.259, 2233.259},
	{&classic.Paced{}, "OverloadCap", 20, overload, 60, 30, 30, 2233.259},
	{&classic.Decorrelated{}, "Base", 10, cheap, 30, 0, 0, forever},
	{&classic.Decorrelated{}, "Cap", 5, cheap, 30, 0, 243, 243},
	{&classic.Normal{}, "Min", 10, cheap, 51.2, 0, 0, forever},
	{&classic.Normal{}, "Factor", 20, cheap, 900, 0.1, 0.1, 900},
	{&classic.Normal{}, "Jitter", 10, cheap, 51.2, 51.2, 51.2, 0},
	{&classic.Normal{}, "Max", 15, cheap, 900, 0, 1638.4, 1638.4},
	{&classic.AWS{}, "Base", 6, cheap, 1.6, 0, 0, 20},
	{&classic.AWS{}, "Max", 15, cheap, 20, 0, 0, 819.2},
	{&classic.AWSLegacy{}, "Max", 10, cheap, 20, 0, 0, 1024},
	{&classic.Celery{}, "Factor", 5, cheap, 16, 16, 0, 600},
	{&classic.Celery{}, "Maximum", 11, cheap, 600, 1, 0, 1024},
	{&classic.CeleryOld{}, "Factor", 5, cheap, 16, 16, 0, 600},
	{&classic.CeleryOld{}, "Maximum", 11, cheap, 600, 1, 0, 1024},
	{&classic.ConnectRetry{}, "MaxSleep", 20, cheap, 64, 0, 0, 524288},
	{&classic.Fixed{}, "Wait", 5, cheap, 1, 0, 0, forever},
	{&classic.NATS{}, "Wait", 5, cheap, 2.1, 0.1, 0.1, forever},
	{&classic.NATS{}, "Jitter", 5, cheap, 2.1, 2, 2, forever},
	{&classic.Ethernet{}, "Slot", 3, cheap, 0, 0, 0, forever / 1024 * 7},
	{&classic.JPillora{}, "Min", 5, cheap, 1.6, 0, 0, 10},
	{&classic.JPillora{}, "Max", 10, cheap, 10, 0, 0, 51.2},
	{&classic.JPillora{}, "Factor", 5, cheap, 1.6, 0.1, 0.1, 10},
	{&classic.Stubborn{}, "Base", 3, cheap, 16.8, 0, 0, 1800},
	{&classic.Stubborn{}, "Factor", 3, cheap, 16.8, 4.2, 4.2, 1800},
	{&classic.Stubborn{}, "Spread", 3, cheap, 16.8, 32, 16, 32},
	{&classic.Stubborn{}, "Max", 12, cheap, 1800, 0, 0, 8601.6},
	{&classic.Cenkalti{}, "Initial", 2, cheap, 1.125, 0, 0, 90},
	{&classic.Cenkalti{}, "Multiplier", 2, cheap, 1.125, 0.75, 0.75, 90},
	{&classic.Cenkalti{}, "Randomization", 2, cheap, 1.125, 1.5, 0.75, 1.5},
	{&classic.Cenkalti{}, "Max", 13, cheap, 90, 0, 0, 97.31},
	{&classic.GRPC{}, "Base", 2, cheap, 1.92, 0, 0, 144},
	{&classic.GRPC{}, "Multiplier", 2, cheap, 1.92, 1.2, 1.2, 144},
	{&classic.GRPC{}, "Jitter", 2, cheap, 1.92, 3.2, 1.6, 3.2},
	{&classic.GRPC{}, "Max", 12, cheap, 144, 0, 0, 211.106},
	{&classic.GRPC{}, "Connect", 2, cheap, 1.92, 1.92, 1.92, 1.92},
	{&classic.Tailscale{}, "Max", 60, cheap, 45, 0, 0, 54},
}

// extremes returns the extreme values of an option of a kind, and what comes of each.
func (m means) extremes(kind reflect.Kind) map[any]float64 {
	switch kind {
	case reflect.Int:
		return map[any]float64{0: m.zero, 1: m.one, -1: m.negative, math.MinInt: m.negative, math.MaxInt: m.highest}
	case reflect.Int64:
		return map[any]float64{
			time.Duration(0): m.zero, time.Duration(1): m.one, time.Duration(-1): m.negative,
			time.Duration(math.MinInt64): m.negative, time.Duration(math.MaxInt64): m.highest,
		}
	case reflect.Float64:
		return map[any]float64{
			0.0: m.zero, math.NaN(): m.zero, 1.0: m.one, -1.0: m.negative, -math.MaxFloat64: m.negative, math.Inf(-1): m.negative,
			math.MaxFloat64: m.highest, math.Inf(1): m.highest,
		}
	}
	return nil
}

// last returns the last wait of p, 0 if it does not wait.
func (m means) last(p backoff.Policy) float64 {
	all := waits(p, m.waits, m.class, highest)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1]
}

func TestNoNumberBreaksAPolicy(t *testing.T) {
	for _, m := range meanings {
		of := reflect.TypeOf(m.policy).Elem()
		field, _ := of.FieldByName(m.option)
		for x, want := range m.extremes(field.Type.Kind()) {
			p := reflect.New(of)
			p.Elem().Set(reflect.ValueOf(m.policy).Elem())
			p.Elem().FieldByName(m.option).Set(reflect.ValueOf(x))
			require.InDelta(t, want, m.last(p.Interface().(backoff.Policy)), 0.001+want/1e6, "%v, %s: %v", of, m.option, x)
		}
	}
}

func TestTheTableHasEachNumericOption(t *testing.T) {
	rows := map[reflect.Type]int{}
	for _, m := range meanings {
		rows[reflect.TypeOf(m.policy).Elem()]++
	}
	for of, got := range rows {
		want := 0
		for _, field := range reflect.VisibleFields(of) {
			want += min(len(means{}.extremes(field.Type.Kind())), 1)
		}
		require.Equal(t, want, got, "rows about %v", of)
	}
}

func TestNoNumberBreaksFirstAndLimit(t *testing.T) {
	waiting := &backoff.Exponential{Jitter: backoff.JitterNone} // 1 s, 2 s, 4 s
	for spread, want := range (means{highest: forever}).extremes(reflect.Int64) {
		first := waits(backoff.First(spread.(time.Duration), waiting), 1, cheap, highest)
		require.InDelta(t, want, first[0], 1e-3, "%v", spread)
	}
	for attempts, want := range (means{zero: 9, one: 1, negative: 9, highest: 9}).extremes(reflect.Int) {
		require.Len(t, waits(backoff.Limit(waiting, attempts.(int), 0), 9, cheap, highest), int(want), "%v", attempts)
	}
	for elapsed, want := range (means{zero: 9, one: 0, negative: 9, highest: 9}).extremes(reflect.Int64) {
		require.Len(t, waits(backoff.Limit(waiting, 0, elapsed.(time.Duration)), 9, cheap, highest), int(want), "%v", elapsed)
	}
}

// handshakeLimit returns the limit on the handshake after the third overload in a row, in an
// outage of ten minutes.
func handshakeLimit(p backoff.Timeout) float64 {
	inside := &seen{step: backoff.Step{Handshake: 7 * time.Second}}
	s, _ := backoff.WithTimeouts(inside, backoff.Timeout{}, p).Next(backoff.History{Overloads: 3, Elapsed: 10 * time.Minute}, seeded())
	return s.Handshake.Seconds()
}

func TestNoNumberBreaksATimeout(t *testing.T) {
	for base, want := range (means{zero: 240, one: 0, negative: 7, highest: forever}).extremes(reflect.Int64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Base: base.(time.Duration)}), 1e-6, "Base %v", base)
	}
	for factor, want := range (means{zero: 240, one: 30, negative: 30, highest: 300}).extremes(reflect.Float64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Factor: factor.(float64)}), 1e-6, "Factor %v", factor)
	}
	for share, want := range (means{zero: 240, one: 300, negative: 240, highest: 300}).extremes(reflect.Float64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Share: share.(float64)}), 1e-6, "Share %v", share)
	}
	for limit, want := range (means{zero: 240, one: 0, negative: 240, highest: 240}).extremes(reflect.Int64) {
		require.InDelta(t, want, handshakeLimit(backoff.Timeout{Cap: limit.(time.Duration)}), 1e-6, "Cap %v", limit)
	}
}

func TestNoNumberBreaksRetryAfter(t *testing.T) {
	for told, want := range (means{one: 1e-9, highest: 3600}).extremes(reflect.Int64) {
		got := backoff.Classify(backoff.RetryAfter(io.EOF, told.(time.Duration))).RetryAfter
		require.InDelta(t, want, got.Seconds(), 1e-12, "%v", told)
	}
}
