package backoff_test

import (
	"testing"
	"time"

	"github.com/redial-go/redial/internal/policytest"
	"github.com/redial-go/redial/reconnect/backoff"
)

func TestDrawsAgreeWithTheReferenceMoments(t *testing.T) {
	const half = 30 * time.Second
	policytest.TestMoments(t, "testdata/backoff_moments.csv", map[string]policytest.Drawn{
		"full_jitter":     {Policy: &backoff.Exponential{}, Cap: half},
		"equal_jitter":    {Policy: &backoff.Exponential{Jitter: backoff.JitterEqual}, Cap: half},
		"proportional_20": {Policy: &backoff.Exponential{Jitter: backoff.JitterProportional}, Cap: half},
		"exponential":     {Policy: &backoff.Exponential{Jitter: backoff.JitterNone}, Cap: half},
	})
}
