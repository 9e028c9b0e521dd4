package classic_test

import (
	"testing"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/internal/policytest"
)

// Zero is the default, and so is NaN. Negative is off, and no negative number is taken for the
// default in silence.
func TestEachNumberOfAPolicyCanBeOff(t *testing.T) {
	policytest.TestOff(t, []any{
		&classic.Paced{}, &classic.Decorrelated{}, &classic.Normal{}, &classic.Fixed{}, &classic.NATS{},
		&classic.Ethernet{}, &classic.ConnectRetry{}, &classic.Tailscale{}, &classic.Celery{},
		&classic.CeleryOld{}, &classic.Cenkalti{}, &classic.GRPC{}, &classic.JPillora{},
		&classic.Stubborn{}, &classic.AWSLegacy{}, &classic.AWS{},
	}, map[string]any{
		"Paced.Spread": policytest.Otherwise, "Paced.Base": 1, "Paced.Share": policytest.None,
		"Paced.Cap": policytest.Never, "Paced.OverloadCap": 1,
		"Decorrelated.Base": 1, "Decorrelated.Cap": policytest.Never,
		"Normal.Min": 1, "Normal.Factor": 1, "Normal.Jitter": policytest.None,
		"Normal.Max": policytest.Never,
		"Fixed.Wait": 1,
		"NATS.Wait":  1, "NATS.Jitter": 1,
		"Ethernet.Slot":         1,
		"ConnectRetry.MaxSleep": 1,
		"Tailscale.Max":         1,
		"Celery.Factor":         policytest.Otherwise, "Celery.Maximum": policytest.Otherwise,
		"CeleryOld.Factor": policytest.Otherwise, "CeleryOld.Maximum": policytest.Otherwise,
		"Cenkalti.Initial": 1, "Cenkalti.Multiplier": 1, "Cenkalti.Randomization": policytest.None,
		"Cenkalti.Max": 1,
		"GRPC.Base":    1, "GRPC.Multiplier": 1, "GRPC.Jitter": policytest.None, "GRPC.Max": 1,
		"GRPC.Connect": 1,
		"JPillora.Min": 1, "JPillora.Max": 1, "JPillora.Factor": 1,
		"Stubborn.Base": 1, "Stubborn.Factor": 1, "Stubborn.Spread": policytest.None, "Stubborn.Max": 1,
		"AWSLegacy.Max": 1,
		"AWS.Base":      1, "AWS.Max": 1,
	})
}
