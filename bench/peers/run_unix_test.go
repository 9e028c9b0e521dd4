//go:build unix

package main

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireNoChild fails if this process has a child left.
func requireNoChild(t *testing.T) {
	t.Helper()
	_, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
	require.ErrorIs(t, err, syscall.ECHILD)
}

func TestAProcessThatIsEndedIsGone(t *testing.T) {
	p, err := start()
	require.NoError(t, err)
	p.end()
	p.end()
	requireNoChild(t)
	_, err = p.do(t.Context(), order{Do: "usage"})
	require.ErrorContains(t, err, "usage: the process has ended")
}

func TestAProcessThatIsStoppedIsEndedWithItsContext(t *testing.T) {
	p, err := start()
	require.NoError(t, err)
	_, err = p.do(t.Context(), order{Do: "usage"})
	require.NoError(t, err)
	require.NoError(t, p.Halt())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.do(ctx, order{Do: "usage"})
	require.ErrorIs(t, err, ctx.Err())
	requireNoChild(t)
}

func TestAnErrorOfAChildReachesItsParent(t *testing.T) {
	p, err := start()
	require.NoError(t, err)
	defer p.end()
	_, err = p.do(t.Context(), order{Do: "nonsense"})
	require.EqualError(t, err, "there is no order nonsense")
	_, err = p.do(t.Context(), order{Do: "usage"})
	require.NoError(t, err)
}

func TestAnEndedContextLeavesWhatWasMeasuredAndNoProcess(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := short("receive-128", "silent")
	o.client, o.Peers, o.sizes.quiet = nil, []string{"tcp"}, patience
	done := 0
	o.Progress = func() {
		if done++; done == 3 { // the silent server is next
			cancel(enough)
		}
	}
	report, err := Run(ctx, o)
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, report.Rows[0].rounds())
	require.Zero(t, report.Rows[1].rounds())
	requireNoChild(t)
}
