package reconnect_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
)

// In the log a rotation that never succeeds does not look like an outage, and warns after three
// dials. When the old session is lost, it is an outage.
func TestLogWarnsOfRotationThatNeverSucceeds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		c, b := s.openLogged(rotating(reconnect.OverlapHold))
		var old *conntest.Fake
		for range 7 { // so that its number differs from that of its successors
			if old != nil {
				old.Fail(errLost)
			}
			old = s.wantDial().accept()
		}
		b.Reset()
		c.Rotate(7, reconnect.Advice{})
		for range 4 {
			s.wantDial().refuse(errLost)
		}
		require.Equal(t, reconnect.StateReady, c.State())
		var waits []string
		for _, line := range lines(b) {
			if strings.Contains(line, "waiting") {
				waits = append(waits, line)
			}
		}
		require.Equal(t, []string{
			`level=INFO msg="waiting to dial replacement" session=7 try=2 wait=1s verdict=retry cause=lost`,
			`level=INFO msg="waiting to dial replacement" session=7 try=3 wait=1s verdict=retry cause=lost`,
			`level=WARN msg="waiting to dial replacement" session=7 try=4 wait=1s verdict=retry cause=lost`,
			`level=WARN msg="waiting to dial replacement" session=7 try=5 wait=1s verdict=retry cause=lost`,
		}, waits)
		b.Reset()
		d := s.wantDial()
		old.Fail(errLost)
		synctest.Wait()
		d.refuse(errLost)
		require.Contains(t, b.String(), `level=INFO msg="waiting to redial" try=6`)
		s.wantDial().accept()
	})
}
