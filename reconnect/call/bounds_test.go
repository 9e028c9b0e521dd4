package call_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// Each bound of Options.InFlight holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	const n = 3
	for name, within := range map[string]func(t *testing.T, s *scene, k int) bool{
		"questions without an answer": func(t *testing.T, s *scene, k int) bool {
			s.open(nil)
			s.accept()
			for i := range k {
				s.ask(fmt.Sprint(i+1, " why?"))
			}
			return s.client.Stats().Refused == 0
		},
		"questions that wait for a session": func(t *testing.T, s *scene, k int) bool {
			s.open(&reconnect.Options{WhenDown: reconnect.WhenDownWait})
			for i := range k {
				s.ask(fmt.Sprint(i+1, " why?"))
			}
			return s.client.Stats().Refused == 0
		},
		"ids of questions that were given up": func(t *testing.T, s *scene, k int) bool {
			s.open(nil)
			s.accept()
			for i := range k {
				ctx, cancel := context.WithCancel(t.Context())
				a := s.do(ctx, request(fmt.Sprint(i+1, " why?")))
				cancel()
				a.wantError(reconnect.FateUnknown, context.Canceled)
			}
			return s.client.Stats().Forgotten == 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			for k := n - 1; k <= n+1; k++ {
				inBubble(t, func(t *testing.T, s *scene) {
					s.o.InFlight = n
					require.Equal(t, k <= n, within(t, s, k), "%d of %d", k, n)
				})
			}
		})
	}
}

func TestDefaultInFlightIsAsDocumented(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		s.open(&reconnect.Options{WhenDown: reconnect.WhenDownWait})
		for i := range 1025 {
			go s.client.Do(t.Context(), request(fmt.Sprint(i+1, " why?"))) // ends with the Conn
		}
		synctest.Wait()
		require.Equal(t, call.Stats{InFlight: 1024, Asked: 1024, Refused: 1}, s.client.Stats())
	})
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[call.Options[string]]()}
	require.Empty(t, numeric.WithoutRow(options, []string{"InFlight"}))
}
