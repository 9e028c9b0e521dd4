package reconnect_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Promise 6: what was not begun is dropped, and the session that it was tried by is named.
func TestAWriteThatWasNotBegunFailsIfItMayNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		c := s.open(&o)
		s.wantDial().accept().FailWrite(fmt.Errorf("%w: %w", conn.ErrNotWritten, errLost))
		err := c.Write(t.Context(), text("x"))
		wantFate(t, err, reconnect.FateDropped, 1)
		require.ErrorIs(t, err, errLost)
	})
}

// Promise 6: a write that was cut says why.
func TestAWriteLearnsTheCauseOfACut(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		o := run(every(time.Hour))
		c := s.open(&o)
		s.wantDial().accept().Hold()
		wrote := make(chan error, 1)
		go func() { wrote <- c.Write(t.Context(), text("x")) }()
		synctest.Wait()
		c.Redial(1, errLost)
		require.Equal(t, &reconnect.WriteError{Fate: reconnect.FateUnknown, Session: 1, Err: errLost}, <-wrote)
	})
}
