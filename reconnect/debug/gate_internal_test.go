package debug

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/budget"
)

// A program that makes gates for ever does not make the Page grow.
func TestThePageForgetsTheNumbersOfGatesThatAreGone(t *testing.T) {
	p := New(nil)
	defer p.Close()
	first := new(budget.Gate)
	require.Equal(t, causeGate, p.gateCause(first))
	for range 100 {
		p.gateCause(&budget.Gate{})
	}
	runtime.GC()
	require.Equal(t, causeGate+"2", p.gateCause(new(budget.Gate)))
	require.LessOrEqual(t, len(p.gateNumbers), 3)
	require.Equal(t, causeGate, p.gateCause(first))
	runtime.KeepAlive(first)
}
