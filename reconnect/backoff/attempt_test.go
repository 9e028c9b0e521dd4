package backoff_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/backoff"
)

func TestTryTravelsInTheContext(t *testing.T) {
	want := backoff.Attempt{Number: 3, Connect: time.Second, Handshake: time.Minute, Refresh: true}
	require.Equal(t, want, backoff.AttemptFrom(backoff.WithAttempt(t.Context(), want)))
	require.Equal(t, backoff.Attempt{}, backoff.AttemptFrom(t.Context()))
}

func TestAHandshakeThatWasNotAnsweredIsATimeout(t *testing.T) {
	var timeout interface{ Timeout() bool }
	require.ErrorAs(t, backoff.ErrHung, &timeout)
	require.True(t, timeout.Timeout())
	require.ErrorIs(t, backoff.ErrHung, context.DeadlineExceeded)
	require.NotErrorIs(t, backoff.ErrHung, context.Canceled)
}
