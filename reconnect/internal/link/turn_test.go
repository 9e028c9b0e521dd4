package link

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
)

// The low bits of a turn are what the supervisor does, the high ones count its pauses, and Lag is apart from both.
func TestATurnSaysWhatTheSupervisorDoesAndWhichPauseItIs(t *testing.T) {
	w, o := newWorld(nil, noLimit), new(watched)
	w.Observe(o)
	handle, block := func() { w.Pause(Handling) }, func() { w.Pause(Blocked) }
	lag, catchUp := func() { w.Lag(true) }, func() { w.Lag(false) }
	for i, step := range []struct {
		do           func()
		does, pauses Turn
		lags         bool
		resumed      int
	}{
		{catchUp, Reading, 0, false, 0},
		{w.Unpause, Reading, 0, false, 0}, // there is no pause
		{handle, Handling, 1, false, 0},
		{handle, Handling, 2, false, 0}, // the next message
		{block, Blocked, 3, false, 0},
		{lag, Blocked, 3, true, 0},
		{w.Unpause, Reading, 3, true, 1},
		{lag, Reading, 3, true, 1},
		{handle, Handling, 4, true, 1},
		{catchUp, Handling, 4, false, 1},
		{w.Resume, Reading, 4, false, 2},
		{w.Resume, Reading, 4, false, 3},
	} {
		step.do()
		require.Equal(t, []Turn{step.does, step.pauses}, []Turn{w.Turn().Does(), w.Turn() / nextTurn}, i)
		require.Equal(t, step.lags, w.Lags(), i)
		require.Equal(t, step.does == Reading, w.IsRead(), i)
		require.Equal(t, step.does != Reading || step.lags, w.Behind(), i)
		require.Equal(t, watched{resumed: step.resumed}, *o, i)
	}
}

func TestTheObserverIsToldWhatHappens(t *testing.T) {
	w, o := newWorld(nil, noLimit), new(watched)
	for range 2 { // at first nobody observes
		w.Heard()
		w.Pause(Handling)
		w.Resume()
		_, err := w.Write(messages("ab"))
		require.NoError(t, err)
		require.NoError(t, w.WriteFirst(t.Context(), conn.TextMessage("c")))
		w.Observe(o)
	}
	require.Equal(t, watched{heard: 1, resumed: 1, wrote: 2}, *o)
}
