package classic_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/backoff/classic"
)

// How a numeric field behaves when it is negative: as a value that is almost off, or as one of
// these.
const (
	asDefault = "as zero"
	otherwise = "not as zero" // nothing that is positive does the same
)

const none, never = 1e-300, time.Duration(1<<62 - 1)

// negative has each numeric field of each policy of this package and of package backoff.
var negative = map[string]any{
	"Adaptive.Spread": 1, "Adaptive.Base": 1, "Adaptive.Share": none, "Adaptive.Cap": never, "Adaptive.OverloadCap": never,
	"Adaptive.RetryAfterShare": none, "Adaptive.Connect": never, "Adaptive.Hang": never, "Adaptive.HangShare": none,
	"Exponential.Base": 1, "Exponential.Factor": 1, "Exponential.Cap": never, "Exponential.OverloadCap": asDefault,
	"Exponential.Spread": none,
	"Paced.Spread":       otherwise, "Paced.Base": 1, "Paced.Share": none, "Paced.Cap": never, "Paced.OverloadCap": 1,
	"Decorrelated.Base": 1, "Decorrelated.Cap": never,
	"Normal.Min": 1, "Normal.Factor": 1, "Normal.Jitter": none, "Normal.Max": never,
	"Timeout.Base": otherwise, "Timeout.Factor": 1, "Timeout.Share": asDefault, "Timeout.Cap": never,
	"Fixed.Wait": 1, "NATS.Wait": 1, "NATS.Jitter": 1, "Ethernet.Slot": 1, "ConnectRetry.MaxSleep": 1, "Tailscale.Max": 1,
	"Celery.Factor": otherwise, "Celery.Maximum": otherwise, "CeleryOld.Factor": otherwise, "CeleryOld.Maximum": otherwise,
	"Cenkalti.Initial": 1, "Cenkalti.Multiplier": 1, "Cenkalti.Randomization": none, "Cenkalti.Max": 1,
	"GRPC.Base": 1, "GRPC.Multiplier": 1, "GRPC.Jitter": none, "GRPC.Max": 1, "GRPC.Connect": 1,
	"JPillora.Min": 1, "JPillora.Max": 1, "JPillora.Factor": 1,
	"Stubborn.Base": 1, "Stubborn.Factor": 1, "Stubborn.Spread": none, "Stubborn.Max": 1,
	"AWSLegacy.Max": 1, "AWS.Base": 1, "AWS.Max": 1, "OCPP.WaitMinimum": 1, "OCPP.RepeatTimes": otherwise, "OCPP.RandomRange": 1,
}

// Zero is the default, and so is NaN. Negative is off, and no negative number is taken for the
// default in silence.
func TestEachNumberOfAPolicyCanBeOff(t *testing.T) {
	left := map[string]bool{}
	for field := range negative {
		left[field] = true
	}
	for _, p := range []any{
		&backoff.Adaptive{}, &backoff.Exponential{Jitter: backoff.JitterProportional}, &classic.Paced{}, &classic.Decorrelated{}, &classic.Normal{},
		&backoff.Timeout{}, &classic.Fixed{}, &classic.NATS{}, &classic.Ethernet{}, &classic.ConnectRetry{}, &classic.Tailscale{},
		&classic.Celery{}, &classic.CeleryOld{}, &classic.Cenkalti{}, &classic.GRPC{}, &classic.JPillora{}, &classic.Stubborn{},
		&classic.AWSLegacy{}, &classic.AWS{}, &classic.OCPP{},
	} {
		of := reflect.TypeOf(p).Elem()
		for i := range of.NumField() {
			if kind := of.Field(i).Type.Kind(); kind == reflect.Bool || kind == reflect.Uint8 {
				continue
			}
			name := of.Name() + "." + of.Field(i).Name
			delete(left, name)
			offIsOff(t, name, p, i)
		}
	}
	require.Empty(t, left, "there are no such fields")
}

// offIsOff asserts what a negative field does.
func offIsOff(t *testing.T, name string, p any, field int) {
	usual := stepsOf(p)
	off, known := negative[name]
	require.True(t, known, "%s: what does a negative number do?", name)
	if reflect.TypeOf(p).Elem().Field(field).Type.Kind() == reflect.Float64 {
		requireSame(t, name+" NaN", usual, stepsOf(with(p, field, math.NaN())))
	}
	for _, number := range []any{-1, math.MinInt32} {
		steps := stepsOf(with(p, field, number))
		switch off {
		case asDefault:
			requireSame(t, name, usual, steps)
		default:
			requireSame(t, name, stepsOf(with(p, field, off)), steps)
			fallthrough
		case otherwise:
			require.NotEqual(t, usual, steps, name)
		}
	}
}

// with returns a copy of p with a number in one of its fields.
func with(p any, field int, number any) any {
	q := reflect.New(reflect.TypeOf(p).Elem())
	q.Elem().Set(reflect.ValueOf(p).Elem())
	f := q.Elem().Field(field)
	f.Set(reflect.ValueOf(number).Convert(f.Type()))
	return q.Interface()
}

// stepsOf returns what p does in outages of several kinds, in which it is asked 15 times.
func stepsOf(p any) (steps []backoff.Step) {
	policy, ok := p.(backoff.Policy)
	if !ok {
		policy = backoff.WithTimeouts(&classic.Fixed{}, backoff.Timeout{}, *p.(*backoff.Timeout))
	}
	for _, kind := range []backoff.History{
		{},
		{Verdict: backoff.Verdict{Class: backoff.ClassOverload}},
		{Verdict: backoff.Verdict{Class: backoff.ClassOverload, RetryAfter: time.Minute}, RetryAfterFor: time.Hour},
		{Hang: time.Hour},
	} {
		prev := time.Duration(0)
		for n := range 15 {
			a := kind
			a.N, a.Prev, a.Elapsed, a.Overloads = n, prev, time.Duration(n*n)*time.Second, n
			s, ok := policy.Next(a, rand.New(constant(0xBA5A5A5A5A5A5A5A)))
			if !ok {
				s.Wait = -1
			}
			steps, prev = append(steps, s), s.Wait
		}
	}
	return steps
}

// requireSame asserts that two policies do the same, but for a millisecond.
func requireSame(t *testing.T, name string, want, got []backoff.Step) {
	t.Helper()
	require.Len(t, got, len(want), name)
	for i := range want {
		for _, d := range []time.Duration{want[i].Wait - got[i].Wait, want[i].Connect - got[i].Connect, want[i].Handshake - got[i].Handshake} {
			require.Less(t, d.Abs(), time.Millisecond, "%s: %v and %v", name, want[i], got[i])
		}
	}
}
