package budget_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/line"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// extremes are the numbers at which an option may break.
var extremes = map[reflect.Kind]map[string]any{
	reflect.Int:   {"0": 0, "1": 1, "-1": -1, "max": math.MaxInt, "min": math.MinInt},
	reflect.Int64: {"0": int64(0), "1": int64(1), "-1": int64(-1), "max": int64(math.MaxInt64), "min": int64(math.MinInt64)},
	reflect.Float64: {
		"0": 0.0, "1": 1.0, "-1": -1.0, "max": math.MaxFloat64, "min": -math.MaxFloat64,
		"NaN": math.NaN(), "+Inf": math.Inf(1), "-Inf": math.Inf(-1),
	},
}

// meanings has the outcome for each option by its name, and in that for each extreme. An
// extreme that is missing means the same as -1.
type meanings map[string]map[string]string

const refusal = "refused"

// eachExtreme sets one numeric option of an O at a time to one extreme at a time, and
// asserts that the outcome is the one in wants, or an error that names the option.
func eachExtreme[O any](t *testing.T, wants meanings, outcome func(O) (string, error)) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[O]()) {
		for name, extreme := range extremes[field.Type.Kind()] {
			var o O
			reflect.ValueOf(&o).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(extreme).Convert(field.Type))
			require.Contains(t, wants, field.Name)
			want, ok := wants[field.Name][name]
			if !ok {
				want = wants[field.Name]["-1"]
			}
			got, err := outcome(o)
			if err != nil {
				require.ErrorContains(t, err, field.Name+" ")
				got = refusal
			}
			require.Equal(t, want, got, "%s: %s", field.Name, name)
		}
	}
}

func TestNoNumberBreaksABudget(t *testing.T) {
	const usual = "10 + 1, 1910 left"
	eachExtreme(t, meanings{
		"Capacity":      {"0": usual, "1": refusal, "-1": refusal, "max": fmt.Sprintf("10 + 1, %d left", math.MaxInt-1090)},
		"Retry":         {"0": usual, "1": "10 + 1, 2999 left", "-1": "10 + 1, 3000 left", "max": refusal},
		"AfterOverload": {"0": usual, "1": "10 + 1, 2009 left", "-1": refusal, "max": "10 + 0, 2010 left"},
		"First":         {"0": usual, "1": "10 + 1, 1901 left", "-1": "10 + 1, 1900 left", "max": "10 + 1, 3000 left"},
		"Again":         {"0": usual, "1": "10 + 1, 1911 left", "-1": "10 + 1, 2010 left", "max": "10 + 1, 3000 left"},
		"Failure":       {"0": usual, "1": "10 + 1, 1900 left", "-1": refusal, "max": "1 + 0, 10 left"},
		"Reserve":       {"0": usual, "1": usual, "-1": refusal, "max": refusal},
	}, func(o budget.Options) (string, error) {
		b, err := budget.New(&o)
		if err != nil {
			return "", err
		}
		failed, succeeded := 0, 0
		for range 10 {
			if try(b, refused, refused) {
				failed++
			}
		}
		if try(b, timeout, success) {
			succeeded++
		}
		try(b, first, success)
		return fmt.Sprintf("%d + %d, %d left", failed, succeeded, b.Tokens()), nil
	})
}

func TestNoNumberBreaksABreaker(t *testing.T) {
	const usual = "open, half open for 3, closed"
	eachExtreme(t, meanings{
		"Window":     {"0": usual, "1": usual, "-1": refusal, "max": usual},
		"MinSamples": {"0": usual, "1": usual, "-1": refusal, "max": "closed, closed for 10, closed"},
		"Share":      {"0": usual, "1": usual, "-1": refusal},
		"Open":       {"0": usual, "1": usual, "-1": "closed, closed for 10, closed", "max": "open, open for 0, open"},
		"HalfOpen":   {"0": usual, "1": "open, half open for 1, closed", "-1": "open, half open for 10, half open", "max": "open, half open for 10, half open"},
		"Trials":     {"0": usual, "1": usual, "-1": refusal, "max": "open, half open for 3, half open"},
	}, func(o budget.BreakerOptions) (string, error) {
		c := newClock()
		o.Now = c.Now
		b, err := budget.NewBreaker(&o)
		if err != nil {
			return "", err
		}
		for range 20 {
			try(b, first, refused)
		}
		failing := b.State()
		c.after(5 * time.Second)
		later := b.State()
		var under []func(backoff.Verdict)
		for range 10 {
			if done, ok := b.Admit(first); ok {
				under = append(under, done)
			}
		}
		for _, done := range under {
			done(success)
		}
		return fmt.Sprintf("%v, %v for %d, %v", failing, later, len(under), b.State()), nil
	})
}

// line.New, which returns no error, takes for the default what NewGate refuses.
func TestNoNumberBreaksALine(t *testing.T) {
	const usual = "10 at once, 60ms for all"
	lines := meanings{
		"Rate":       {"0": usual, "1": "10 at once, 30s for all", "-1": "16 at once, 0s for all", "max": "10 at once, 0s for all", "NaN": usual},
		"Burst":      {"0": usual, "1": "1 at once, 78ms for all", "-1": usual, "max": "16 at once, 0s for all"},
		"Concurrent": {"0": usual, "1": "1 at once, 60ms for all", "-1": usual, "max": usual},
	}
	eachExtreme(t, lines, func(o line.Options) (string, error) {
		if o.Probe == nil {
			o.Probe = every(time.Second)
		}
		q, now := line.New(o, nil), time.Unix(1_000_000, 0)
		start, once := now, 0
		for range 40 {
			q.Join(now)
		}
		var under []*line.Ticket
		for left := 40; left > 0; {
			ticket, next := q.Admit(now)
			switch {
			case ticket != nil:
				under = append(under, ticket)
			case len(under) > 0:
				once = max(once, len(under))
				left -= len(under)
				for _, t := range under {
					q.Done(t, success, now)
				}
				under = nil
			default:
				require.True(t, next.After(now), "%+v: %d wait for ever", o, left)
				now = next
			}
		}
		return fmt.Sprintf("%d at once, %v for all", once, now.Sub(start).Round(time.Millisecond)), nil
	})
	gates := meanings{"Rate": {"-1": "", "NaN": refusal}, "Burst": {"0": "", "1": "", "-1": refusal, "max": ""}, "Concurrent": {"-1": ""}}
	eachExtreme(t, gates, func(o budget.GateOptions) (string, error) {
		_, err := budget.NewGate(&o)
		return "", err
	})
}
