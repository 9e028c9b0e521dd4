package policytest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Off is what a numeric option does when it is negative, if that is not what a positive value does that is
// almost off.
type Off string

// The kinds of Off.
const (
	AsZero    Off = "as zero"
	Otherwise Off = "not as zero" // nothing that is positive does the same
)

// Numbers that are almost off.
const (
	None  = 1e-300                   // no growth, no spread
	Never = time.Duration(1<<62 - 1) // no limit
)

// TestOff fails unless zero, and a float that is not a number, is the default of each numeric option of the
// policies, and a negative number does what the table says: an Off, or the same as another number. The key is
// the name of the type and that of its field. A policy is a pointer to one, or to a [backoff.Timeout].
func TestOff(t *testing.T, policies []any, negative map[string]any) {
	left := map[string]bool{}
	for field := range negative {
		left[field] = true
	}
	for _, p := range policies {
		of := reflect.TypeOf(p).Elem()
		for i := range of.NumField() {
			if kind := of.Field(i).Type.Kind(); kind == reflect.Bool || kind == reflect.Uint8 {
				continue
			}
			name := of.Name() + "." + of.Field(i).Name
			delete(left, name)
			off, known := negative[name]
			if !known {
				t.Errorf("%s: what does a negative number do?", name)
				continue
			}
			offIsOff(t, name, p, i, off)
		}
	}
	for name := range left {
		t.Errorf("there is no field %s", name)
	}
}

// offIsOff fails unless a field does when it is negative what off says.
func offIsOff(t *testing.T, name string, p any, field int, off any) {
	usual := stepsOf(p)
	float := reflect.TypeOf(p).Elem().Field(field).Type.Kind() == reflect.Float64
	if float && !same(usual, stepsOf(with(p, field, math.NaN()))) {
		t.Errorf("%s: NaN is not the default", name)
	}
	for _, number := range []any{-1, math.MinInt32} {
		steps := stepsOf(with(p, field, number))
		switch off {
		case AsZero:
			if !same(usual, steps) {
				t.Errorf("%s: %v is not the default", name, number)
			}
			continue
		case Otherwise:
		default:
			if !same(stepsOf(with(p, field, off)), steps) {
				t.Errorf("%s: %v is not as %v", name, number, off)
			}
		}
		if slices.Equal(usual, steps) {
			t.Errorf("%s: %v is the default", name, number)
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
		policy = backoff.WithTimeouts(everySecond{}, backoff.Timeout{}, *p.(*backoff.Timeout))
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
			s, ok := policy.Next(a, rand.New(Constant(0xBA5A5A5A5A5A5A5A)))
			if !ok {
				s.Wait = -1
			}
			steps, prev = append(steps, s), s.Wait
		}
	}
	return steps
}

// same reports whether two policies do the same, but for a millisecond.
func same(want, got []backoff.Step) bool {
	near := func(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond }
	return slices.EqualFunc(want, got, func(a, b backoff.Step) bool {
		return near(a.Wait, b.Wait) && near(a.Connect, b.Connect) && near(a.Handshake, b.Handshake)
	})
}

// everySecond is a policy without limits.
type everySecond struct{}

func (everySecond) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: time.Second}, true
}
