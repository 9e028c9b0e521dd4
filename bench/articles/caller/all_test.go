package caller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

// told is a budget that admits or not, and keeps the outcomes that are reported to it.
type told struct {
	admits bool
	got    []backoff.Verdict
}

func (b *told) Admit(backoff.Verdict) (func(backoff.Verdict), bool) {
	return func(v backoff.Verdict) { b.got = append(b.got, v) }, b.admits
}

func TestOfTwoBudgetsEachCanRefuse(t *testing.T) {
	for _, w := range []struct{ first, second bool }{{true, true}, {true, false}, {false, true}} {
		first, second := &told{admits: w.first}, &told{admits: w.second}
		done, ok := all{first, second}.Admit(backoff.Verdict{})
		require.Equal(t, w.first && w.second, ok, w)
		switch {
		case ok:
			failed := backoff.Verdict{Class: backoff.ClassOverload}
			done(failed)
			require.Equal(t, []backoff.Verdict{failed}, first.got)
			require.Equal(t, []backoff.Verdict{failed}, second.got)
		case w.first:
			require.Equal(t, []backoff.Verdict{{Class: backoff.ClassStop, Skipped: true}}, first.got, "it has back what it took")
		default:
			require.Empty(t, first.got)
		}
		if !ok {
			require.Empty(t, second.got)
		}
	}
}
