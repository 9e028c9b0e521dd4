package policytest

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// Forever is the longest wait, in seconds.
const Forever = float64(1<<62-1) / 1e9

// Option is a numeric option of a policy, and what comes of its extreme values: the last wait of several, in
// seconds, if all draws are as long as they can be.
type Option struct {
	Policy   any // a pointer to the policy with its other options
	Name     string
	Waits    int  // the number of waits
	Overload bool // the failures are overloads, and not losses

	Zero  float64 // also after a float that is not a number
	One   float64 // after 1, which is a nanosecond of a duration
	Minus float64
	Most  float64
}

// Extremes returns the extreme values of an option of a kind, and what comes of each.
func (o *Option) Extremes(kind reflect.Kind) map[any]float64 {
	switch kind {
	case reflect.Int:
		return map[any]float64{0: o.Zero, 1: o.One, -1: o.Minus, math.MinInt: o.Minus, math.MaxInt: o.Most}
	case reflect.Int64:
		return map[any]float64{
			time.Duration(0): o.Zero, time.Duration(1): o.One, time.Duration(-1): o.Minus,
			time.Duration(math.MinInt64): o.Minus, time.Duration(math.MaxInt64): o.Most,
		}
	case reflect.Float64:
		return map[any]float64{
			0.0: o.Zero, math.NaN(): o.Zero, 1.0: o.One,
			-1.0: o.Minus, -math.MaxFloat64: o.Minus, math.Inf(-1): o.Minus,
			math.MaxFloat64: o.Most, math.Inf(1): o.Most,
		}
	}
	return nil
}

// last returns the last wait of p, or 0 if it does not wait.
func (o *Option) last(p backoff.Policy) float64 {
	class := backoff.ClassRetry
	if o.Overload {
		class = backoff.ClassOverload
	}
	all := Waits(p, o.Waits, class, Highest)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1]
}

// TestOptions fails if an option of the table does not do what its row says, or if a policy that has a row
// lacks the row of another numeric option.
func TestOptions(t *testing.T, table []Option) {
	rows := map[reflect.Type]int{}
	for _, o := range table {
		of := reflect.TypeOf(o.Policy).Elem()
		rows[of]++
		field, _ := of.FieldByName(o.Name)
		for x, want := range o.Extremes(field.Type.Kind()) {
			p := reflect.New(of)
			p.Elem().Set(reflect.ValueOf(o.Policy).Elem())
			p.Elem().FieldByName(o.Name).Set(reflect.ValueOf(x))
			if got := o.last(p.Interface().(backoff.Policy)); math.Abs(got-want) > 0.001+want/1e6 {
				t.Errorf("%v, %s: %v: the last wait is %v s, not %v s", of, o.Name, x, got, want)
			}
		}
	}
	for of, got := range rows {
		want := 0
		for _, field := range reflect.VisibleFields(of) {
			want += min(len(new(Option).Extremes(field.Type.Kind())), 1)
		}
		if got != want {
			t.Errorf("%d rows about the %d numeric options of %v", got, want, of)
		}
	}
}
