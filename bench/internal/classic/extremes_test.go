package classic_test

import (
	"testing"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/internal/policytest"
)

func TestNoNumberBreaksAPolicy(t *testing.T) {
	const forever = policytest.Forever
	policytest.TestOptions(t, []policytest.Option{
		{Policy: &classic.Paced{}, Name: "Spread", Waits: 1, Zero: 2, One: 0, Minus: 2.4, Most: forever},
		{Policy: &classic.Paced{}, Name: "Base", Waits: 2, Zero: 2.4, One: 1, Minus: 1, Most: forever},
		{Policy: &classic.Paced{}, Name: "Share", Waits: 9, Zero: 25.819, One: 30, Minus: 2.4, Most: 30},
		{Policy: &classic.Paced{}, Name: "Cap", Waits: 20, Zero: 30, One: 0, Minus: 2233.259, Most: 2233.259},
		{Policy: &classic.Paced{}, Name: "OverloadCap", Waits: 20, Overload: true,
			Zero: 60, One: 30, Minus: 30, Most: 2233.259},
		{Policy: &classic.Decorrelated{}, Name: "Base", Waits: 10, Zero: 30, One: 0, Minus: 0, Most: forever},
		{Policy: &classic.Decorrelated{}, Name: "Cap", Waits: 5, Zero: 30, One: 0, Minus: 243, Most: 243},
		{Policy: &classic.Normal{}, Name: "Min", Waits: 10, Zero: 51.2, One: 0, Minus: 0, Most: forever},
		{Policy: &classic.Normal{}, Name: "Factor", Waits: 20, Zero: 900, One: 0.1, Minus: 0.1, Most: 900},
		{Policy: &classic.Normal{}, Name: "Jitter", Waits: 10, Zero: 51.2, One: 51.2, Minus: 51.2, Most: 0},
		{Policy: &classic.Normal{}, Name: "Max", Waits: 15, Zero: 900, One: 0, Minus: 1638.4, Most: 1638.4},
		{Policy: &classic.AWS{}, Name: "Base", Waits: 6, Zero: 1.6, One: 0, Minus: 0, Most: 20},
		{Policy: &classic.AWS{}, Name: "Max", Waits: 15, Zero: 20, One: 0, Minus: 0, Most: 819.2},
		{Policy: &classic.AWSLegacy{}, Name: "Max", Waits: 10, Zero: 20, One: 0, Minus: 0, Most: 1024},
		{Policy: &classic.Celery{}, Name: "Factor", Waits: 5, Zero: 16, One: 16, Minus: 0, Most: 600},
		{Policy: &classic.Celery{}, Name: "Maximum", Waits: 11, Zero: 600, One: 1, Minus: 0, Most: 1024},
		{Policy: &classic.CeleryOld{}, Name: "Factor", Waits: 5, Zero: 16, One: 16, Minus: 0, Most: 600},
		{Policy: &classic.CeleryOld{}, Name: "Maximum", Waits: 11, Zero: 600, One: 1, Minus: 0, Most: 1024},
		{Policy: &classic.ConnectRetry{}, Name: "MaxSleep", Waits: 20, Zero: 64, One: 0, Minus: 0, Most: 524288},
		{Policy: &classic.Fixed{}, Name: "Wait", Waits: 5, Zero: 1, One: 0, Minus: 0, Most: forever},
		{Policy: &classic.NATS{}, Name: "Wait", Waits: 5, Zero: 2.1, One: 0.1, Minus: 0.1, Most: forever},
		{Policy: &classic.NATS{}, Name: "Jitter", Waits: 5, Zero: 2.1, One: 2, Minus: 2, Most: forever},
		{Policy: &classic.Ethernet{}, Name: "Slot", Waits: 3, Zero: 0, One: 0, Minus: 0, Most: forever / 1024 * 7},
		{Policy: &classic.JPillora{}, Name: "Min", Waits: 5, Zero: 1.6, One: 0, Minus: 0, Most: 10},
		{Policy: &classic.JPillora{}, Name: "Max", Waits: 10, Zero: 10, One: 0, Minus: 0, Most: 51.2},
		{Policy: &classic.JPillora{}, Name: "Factor", Waits: 5, Zero: 1.6, One: 0.1, Minus: 0.1, Most: 10},
		{Policy: &classic.Stubborn{}, Name: "Base", Waits: 3, Zero: 16.8, One: 0, Minus: 0, Most: 1800},
		{Policy: &classic.Stubborn{}, Name: "Factor", Waits: 3, Zero: 16.8, One: 4.2, Minus: 4.2, Most: 1800},
		{Policy: &classic.Stubborn{}, Name: "Spread", Waits: 3, Zero: 16.8, One: 32, Minus: 16, Most: 32},
		{Policy: &classic.Stubborn{}, Name: "Max", Waits: 12, Zero: 1800, One: 0, Minus: 0, Most: 8601.6},
		{Policy: &classic.Cenkalti{}, Name: "Initial", Waits: 2, Zero: 1.125, One: 0, Minus: 0, Most: 90},
		{Policy: &classic.Cenkalti{}, Name: "Multiplier", Waits: 2, Zero: 1.125, One: 0.75, Minus: 0.75, Most: 90},
		{Policy: &classic.Cenkalti{}, Name: "Randomization", Waits: 2, Zero: 1.125, One: 1.5, Minus: 0.75, Most: 1.5},
		{Policy: &classic.Cenkalti{}, Name: "Max", Waits: 13, Zero: 90, One: 0, Minus: 0, Most: 97.31},
		{Policy: &classic.GRPC{}, Name: "Base", Waits: 2, Zero: 1.92, One: 0, Minus: 0, Most: 144},
		{Policy: &classic.GRPC{}, Name: "Multiplier", Waits: 2, Zero: 1.92, One: 1.2, Minus: 1.2, Most: 144},
		{Policy: &classic.GRPC{}, Name: "Jitter", Waits: 2, Zero: 1.92, One: 3.2, Minus: 1.6, Most: 3.2},
		{Policy: &classic.GRPC{}, Name: "Max", Waits: 12, Zero: 144, One: 0, Minus: 0, Most: 211.106},
		{Policy: &classic.GRPC{}, Name: "Connect", Waits: 2, Zero: 1.92, One: 1.92, Minus: 1.92, Most: 1.92},
		{Policy: &classic.Tailscale{}, Name: "Max", Waits: 60, Zero: 45, One: 0, Minus: 0, Most: 54},
	})
}
