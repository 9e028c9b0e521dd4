package run_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// In the log a rotation that never succeeds does not look like an outage, and warns after three
// dials. When the old session is lost, it is an outage.
func TestLogWarnsOfRotationThatNeverSucceeds(t *testing.T) {
	scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
		c, b := s.OpenLogged(scene.Rotating(reconnect.OverlapHold))
		var old *conntest.Fake
		for range 7 { // so that its number differs from that of its successors
			if old != nil {
				old.Fail(scene.ErrLost)
			}
			old = s.WantDial().Accept()
		}
		b.Reset()
		c.Rotate(7, reconnect.Advice{})
		for range 4 {
			s.WantDial().Refuse(scene.ErrLost)
		}
		require.Equal(t, reconnect.StateReady, c.State())
		var waits []string
		for _, line := range scene.Lines(b) {
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
		d := s.WantDial()
		old.Fail(scene.ErrLost)
		synctest.Wait()
		d.Refuse(scene.ErrLost)
		require.Contains(t, b.String(), `level=INFO msg="waiting to redial" try=6`)
		s.WantDial().Accept()
	})
}
