package backoff_test

import (
	"testing"

	"github.com/redial-go/redial/internal/policytest"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Zero is the default, and so is NaN. Negative is off, and no negative number is taken for the
// default in silence.
func TestEachNumberOfAPolicyCanBeOff(t *testing.T) {
	policytest.TestOff(t, []any{
		&backoff.Adaptive{}, &backoff.OCPP{}, &backoff.Timeout{},
		&backoff.Exponential{Jitter: backoff.JitterProportional},
	}, map[string]any{
		"Adaptive.Spread": 1, "Adaptive.Base": 1, "Adaptive.Share": policytest.None,
		"Adaptive.Cap": policytest.Never, "Adaptive.OverloadCap": policytest.Never,
		"Adaptive.RetryAfterShare": policytest.None, "Adaptive.Connect": policytest.Never,
		"Adaptive.Hang": policytest.Never, "Adaptive.HangShare": policytest.None,
		"Exponential.Base": 1, "Exponential.Factor": 1, "Exponential.Cap": policytest.Never,
		"Exponential.OverloadCap": policytest.AsZero, "Exponential.Spread": policytest.None,
		"Timeout.Base": policytest.Otherwise, "Timeout.Factor": 1, "Timeout.Share": policytest.AsZero,
		"Timeout.Cap":      policytest.Never,
		"OCPP.WaitMinimum": 1, "OCPP.RepeatTimes": policytest.Otherwise, "OCPP.RandomRange": 1,
	})
}
