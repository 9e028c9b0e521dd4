package ledger_test

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/numeric"
	"github.com/redial-go/redial/reconnect/ledger"
)

const n = 4

// bounds are the limits that options set to n, by the option.
var bounds = map[string]struct {
	o      ledger.Options
	within func(t *testing.T, s *ledgerScene, k int) bool
}{
	"Messages": {ledger.Options{Messages: n}, func(t *testing.T, s *ledgerScene, k int) bool {
		for range k - 1 {
			s.add("a")
		}
		_, err := s.ledger.Add([]byte("b"))
		return err == nil
	}},
	"Messages with DropOldest": {ledger.Options{
		Messages: n, DropOldest: true,
	}, func(t *testing.T, s *ledgerScene, k int) bool {
		for range k {
			s.add("a")
		}
		return len(s.outcomes()) == 0
	}},
	"Messages that were sent": {ledger.Options{Messages: n}, func(t *testing.T, s *ledgerScene, k int) bool {
		s.open()
		s.accept()
		for range k - 1 {
			s.add("a")
		}
		_, err := s.ledger.Add([]byte("b"))
		return err == nil
	}},
	"Bytes": {ledger.Options{Bytes: n}, func(t *testing.T, s *ledgerScene, k int) bool {
		_, err := s.ledger.Add(make([]byte, k))
		return err == nil
	}},
	"Bytes, of two messages": {ledger.Options{Bytes: n}, func(t *testing.T, s *ledgerScene, k int) bool {
		s.add("a")
		_, err := s.ledger.Add(make([]byte, k-1))
		return err == nil
	}},
	"Bytes with DropOldest": {
		ledger.Options{Bytes: n, DropOldest: true},
		func(t *testing.T, s *ledgerScene, k int) bool {
			s.add("a", fmt.Sprintf("%0*d", k-1, 0))
			return len(s.outcomes()) == 0
		},
	},
}

// Each bound holds exactly: one less and the bound itself are within it, and one more is not.
func TestBoundsAreExact(t *testing.T) {
	for name, b := range bounds {
		t.Run(name, func(t *testing.T) {
			for k := n - 1; k <= n+1; k++ {
				withLedger(t, b.o, func(t *testing.T, s *ledgerScene) {
					require.Equal(t, k <= n, b.within(t, s, k), "%d of %d", k, n)
				})
			}
		})
	}
}

// A message expires at its Age, and not a nanosecond before.
func TestAgeIsExact(t *testing.T) {
	const age = time.Minute
	for k := age - 1; k <= age+1; k++ {
		withLedger(t, ledger.Options{Age: age}, func(t *testing.T, s *ledgerScene) {
			s.open()
			s.add("a")
			time.Sleep(k)
			synctest.Wait()
			require.Equal(t, k >= age, len(s.outcomes()) == 1, "after %v", k)
		})
	}
}

func TestEveryNumericOptionHasItsBoundTested(t *testing.T) {
	options := map[string]reflect.Type{"": reflect.TypeFor[ledger.Options]()}
	require.Empty(t, numeric.WithoutRow(options, bounds, []string{"Age"}))
}
